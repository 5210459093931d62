"""A second wave of attempts at hard tasks, so that they weigh as much as even ones; large draws, trained twice.

Title: Depth-Breadth Synergy in RLVR: Unlocking LLM Reasoning Gains with Adaptive Exploration
Paper: arXiv 2508.13755 (2025)
Claim: Better pass@1 and pass@k at once than more attempts or larger draws alone.
Reading: As released: 8 attempts, at most 32 (64 by hardness), rewards minus the mean over both waves, tokens over a
    constant, the whole draw as one minibatch, in two epochs. Its 3072 tasks a draw are 32 here.
Left out: The variant that divides by the spread, which no released run uses. The release's bonus of 0.001 on entropy.
Acts: attempts_added > 0
"""

from __future__ import annotations

from strop.control.budgets.rebalanced import Rebalanced
from strop.filter.gates.zero_variance import ZeroVariance
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_mean import GroupMean
from strop.training.losses.clip import Clip
from strop.training.reductions.constant_length import ConstantLength


def dars(
    setting: Setting = Setting(groups_per_step=32),
    most: int = 32,  # attempts at one task, both waves together; the paper has 64 with by_hardness
    by_hardness: bool = False,  # whether harder tasks shall weigh more than even ones, and not the same
) -> Run:
    """`group_size` attempts first, then up to `most` at what was solved by fewer than half of them."""
    return setting.run(
        "dars",
        GroupMean(),
        (Clip(0.2, 0.2),),
        budget=Rebalanced(setting.group_size, most, by_hardness),
        gates=(ZeroVariance(),),
        reduction=ConstantLength(setting.max_tokens),
        epochs=2,
    )
