"""One attempt more than is trained, and the median of them all as the baseline.

Title: MC-GRPO: Median-Centered Group Relative Policy Optimization for Small-Rollout Reinforcement Learning
Paper: arXiv 2601.22582 (2026)
Claim: Groups of 2 come within 1 % of groups of 8.
Reading: The paper divides by the median distance, which is 0 in most groups of 0/1 rewards and gives the odd one out
    a credit of 1000; `scale` none does not divide.
Acts: kept_share < 1 and credit_mean != 0
"""

from __future__ import annotations

from strop.control.budgets.fixed import Fixed
from strop.filter.gates.without_median import WithoutMedian
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.median_centred import MedianCentred
from strop.training.losses.clip import Clip


def mc_grpo(
    setting: Setting = Setting(),
    scale: str = "none",  # none, median_std or median_mad: what divides
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """`group_size` attempts are trained; the paper's scale, `median_mad`, is 0 in most groups of 0/1 rewards."""
    parts = {"gates": (WithoutMedian(),), "budget": Fixed(setting.group_size + 1)}
    return setting.run("mc_grpo", MedianCentred(scale), (Clip(clip, clip),), **parts)
