"""GRPO on quality gained turn by turn, a part of which is whether the task can be guessed from the work alone.

Title: Learning to Present: Inverse Specification Rewards for Agentic Slide Generation
Paper: arXiv 2603.16839 (2026)
Claim: With 0.5 % of its parameters trained on 48 briefs, a 7B model reaches 91.2 % of a far larger one's quality,
    33.1 % above where it began.
Reading: Weights of structure (1), content (2) and inverse specification (2) are the release's, and so are the formula
    of the guess and what a turn earns beside; an audience that nobody named scores 0, where the release gives 0.7; a
    component that fails fails the attempt. A sum stands for a brief and its working for the slides: structure is the
    layout of the reply, content what the world pays. Rules tell briefs, and guess them from steps that hold
    (`judge=http://...#MODEL` asks one).
Left out: Slides: rendering and looks, 5 of the 10 weights; the tools that edit them.
Acts: reward/quality_gained > 0 and reward/inverse_specification < 1 and fact/quality > 0
"""

from __future__ import annotations

from strop.filter.rewards.env_check import Checked
from strop.filter.rewards.env_reward import Earned
from strop.filter.rewards.format import Formatted
from strop.filter.rewards.judged.inverse_specification import InverseSpecification
from strop.filter.rewards.judged.quality_gained import QualityGained
from strop.recipes.llm_clients import judge_seconds, parse_judge
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl

_RULES = "strop.standins.judges.inverse_spec"


def inverse_spec(
    setting: Setting = Setting(),
    judge: str = "rules",  # who tells and guesses briefs: rules, itself, a model's folder, or http://HOST/v1#MODEL
    kl: float = 0.001,  # weight of the penalty to the reference
) -> Run:
    """What the guesser alone says is logged beside it and weighs nothing."""
    run = setting.run("inverse_spec", GroupStandard(), (Clip(0.2, 0.2), Kl("k3", kl)))
    content = Earned(weight=2.0) if all(world.pays for world in run.worlds) else Checked(run.worlds, weight=2.0)
    writer, guesser = (parse_judge(judge, f"{_RULES}:{name}") for name in ("told", "guessed"))
    inverse = InverseSpecification(writer, guesser, 2.0)
    run.rewards = (
        QualityGained((Formatted(weight=1.0), content, inverse)),
        InverseSpecification(writer, guesser, 0.0),
    )
    run.reward_seconds = judge_seconds(judge)
    return run
