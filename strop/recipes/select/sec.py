"""Worlds are arms of a bandit: those whose attempts end unevenly are drawn more often; the rest is GRPO.

Title: Self-Evolving Curriculum for LLM Reasoning
Paper: arXiv 2505.14970 (2025)
Claim: Better than random order and hand-made curricula in planning, induction and mathematics, most on harder tasks.
Reading: An arm is a world of one level. Rate 0.5, and the temperature 0.2 that it has where type and difficulty are
    crossed, as in the worlds here; it has 0.4 for mathematics and 1 for Countdown alone. An arm that was not drawn
    keeps its value, as in the paper's equation; the release lets it fade. Five worlds of which one is neither solved
    nor out of reach stand for its data. Its KL and optimizer steps per draw are not known: 0.001 and one.
Left out: Other choices of the release: greedy with a chance of any arm, values divided by their sum, progress of
    rewards.
Acts: preference > 0 and chance/arithmetic:8 != 0.5 with world=arithmetic:4+arithmetic:8
"""

from __future__ import annotations

from strop.control.samplers.level_bandit import LevelBandit
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.sequence_mean import SequenceMean


def sec(
    setting: Setting = Setting(world="arithmetic:1+countdown:4+compose:3+arithmetic:8+countdown:5"),
    rate: float = 0.5,  # of the latest version in a world's value
    softness: float = 0.2,  # temperature of the choice: the lower, the more the best world is preferred
    fades: bool = False,  # whether a world that was not drawn loses the share `rate` of its value, as released
) -> Run:
    """GRPO on tasks of the world that teaches most now."""
    run = setting.run("sec", GroupStandard(), (Clip(0.2, 0.2), Kl("k3", 0.001)), reduction=SequenceMean())
    run.sampler = LevelBandit(run.worlds, rate, softness, fades, setting.seed)
    return run
