"""SFT combined with GRPO: in two stages, interleaved step by step, or by demonstration prefixes that shrink to zero.

Title: The Synergy Dilemma of Long-CoT SFT and RL: Investigating Post-Training Techniques for Reasoning VLMs
Paper: arXiv 2507.07562 (2025)
Claim: None of five combinations beats RL alone (55.1 on average; two stages 51.4, in turns 53.6, progressive 54.9,
    mixed data 54.0, merged 54.3, supervised training alone 51.4).
Reading: In turns: one demonstration per task is held back for a supervised step after the RL step. Progressive:
    rollouts start from a prefix of a demonstration, which gets shorter with the versions and finally empty. Merged
    models are not trained: `strop.models.merging.merge` interpolates two folders; at the ends of the range it returns
    one of them bit for bit.
Left out: Mixed data, whose second teacher is a model after RL; accuracy by task difficulty for the initial model.
Acts: demonstrations > 0 and teacher/nll > 0 with collected=2
"""

from __future__ import annotations

from dataclasses import replace

from strop.errors import ConfigurationError, nearest
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.strategies.reverse_curriculum import ReverseCurriculum
from strop.generate.strategies.with_demonstrations import Demonstrated
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown as taught
from strop.replay.fifo import Fifo
from strop.replay.interleaved import Interleaved
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.among import Among
from strop.training.losses.clip import Clip
from strop.training.losses.likelihood import Likelihood
from strop.types import Origin

_HOW = ("in_turns", "two_stage", "progressive")
_PLACES = 4  # prefix lengths of a demonstration, from long to short


def synergy_dilemma(
    setting: Setting = Setting(),
    how: str = "in_turns",  # in_turns, two_stage or progressive
    shown: int = 20,  # two_stage: supervised steps before RL
    collected: int = 8,  # in_turns: demonstrations per supervised step
    every: int = 10,  # progressive: versions after which the demonstration prefix gets shorter
) -> Run:
    """GRPO without a KL penalty, combined with demonstrations in one of three ways."""
    if how not in _HOW:
        raise ConfigurationError(f"synergy_dilemma has no how={how!r}: {nearest(how, _HOW)}")
    run = setting.run("synergy_dilemma", GroupStandard(), (Clip(),))
    if how == "two_stage":
        return replace(run, warmup=taught(setting, "synergy_dilemma", shown))
    expert = Demonstrate(least=1.0)
    if how == "progressive":
        return replace(run, strategy=ReverseCurriculum(expert, _PLACES, every))
    return replace(
        run,
        losses=(Among(Clip(), (Origin.POLICY,)), Among(Likelihood(), (Origin.TEACHER,))),
        strategy=Demonstrated(expert),
        buffer=Interleaved(Fifo(), collected),
    )
