"""A rubric pays, and while the policy is new its siblings read more or less of it; trained as if they had not.

Title: Breaking the Exploration Bottleneck: Rubric-Scaffolded Reinforcement Learning for General LLM Reasoning
Paper: arXiv 2508.16949 (2025)
Claim: From 23.6 to 50.3 on HealthBench-500 at 7B, where the same without the scaffold stays behind.
Reading: Old log-probabilities are the policy's behind the plain prompt, so that ratios begin at 1: the scaffold is not
    corrected for, by choice of the paper. The scaffold falls at a fifth of the run, almost at once. Rules stand for the
    writer and the judge of rubrics: an item for each step of a sum, 5 points each. Temperature 0.7, two optimizer steps
    per draw and the mean over tokens, as released. What the world would have paid is logged beside it and weighs
    nothing.
Left out: A sentence that forbids to mention the rubric, and the system prompt as its place: the bundled model reads
    neither (`Scaffolded.shows` is where both go). Sampling within a mass of 0.8 and of the 20 likeliest tokens: ratios
    would be of another distribution than the one sampled from.
Acts: scaffold_share > 0 and reward/rubric_points > 0 with steps=3, world=arithmetic:6
"""

from __future__ import annotations

from strop.filter.rewards.rubric_points import RubricPoints
from strop.generate.llm_clients.procedural import Procedural
from strop.generate.strategies.helped.scaffolded import Scaffolded
from strop.recipes.environment_metric import measured
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.corrections.clamped import Clamped
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl

_RULES = "strop.standins.judges.rubric"


def ruscarl(
    setting: Setting = Setting(world="arithmetic:6", temperature=0.7),
    fall: float = 0.2,  # where half of the scaffold is gone, as a share of the run
    steepness: float = 125.0,  # of its fall
    kl: float = 0.001,  # weight of the distance from the first weights
) -> Run:
    """Siblings read from all of the rubric down to nothing, until the scaffold falls."""
    writer, judge = (Procedural(f"{_RULES}:{name}") for name in ("written", "judged"))
    run = setting.run(
        "ruscarl",
        GroupStandard(),
        (Clip(0.2, 0.2, anchor="proximal"), Kl(weight=kl)),
        strategy=Scaffolded(writer, setting.steps, fall, steepness),
        correction=Clamped(1.0, 1.0, target="proximal"),  # on purpose: the scaffold counts as if it had not been there
        minibatches=2,
    )
    truth = measured(run.worlds)
    run.rewards = (RubricPoints(writer, judge), truth)
    return run
