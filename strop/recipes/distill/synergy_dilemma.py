"""Supervised training and RL combined: one after the other, in turns, or with demonstrations that shrink to nothing.

Title: The Synergy Dilemma of Long-CoT SFT and RL: Investigating Post-Training Techniques for Reasoning VLMs
Paper: arXiv 2507.07562 (2025)
Claim: None of five combinations beats RL alone (55.1 on average; two stages 51.4, in turns 53.6, progressive 54.9,
    mixed data 54.0, merged 54.3, supervised training alone 51.4).
Reading: In turns: one demonstration per task is kept back for a supervised step after that of RL. Progressive: rollouts
    begin within a demonstration, of which less is given as versions go by, and in the end nothing. Merged
    models are not trained: `strop.models.loading.merge_weights.merge` makes one of two folders, the ends bit for bit
    its parents.
Left out: Mixed data, whose second teacher is a model after RL; accuracy by how hard tasks were for the first model.
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
_PLACES = 4  # cuts of a demonstration, from the last to the first


def synergy_dilemma(
    setting: Setting = Setting(),
    how: str = "in_turns",  # in_turns, two_stage or progressive
    shown: int = 20,  # steps of demonstrations before, in two stages
    collected: int = 8,  # demonstrations of one supervised step, in turns
    every: int = 10,  # versions after which less of a demonstration is given, if progressive
) -> Run:
    """GRPO without a penalty, and demonstrations in one of three ways."""
    if how not in _HOW:
        raise ConfigurationError(f"synergy_dilemma has no way {how!r}: {nearest(how, _HOW)}")
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
