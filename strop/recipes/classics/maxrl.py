"""MaxRL: advantages divided by the group's pass rate, which maximizes the log of the success probability.

Title: Maximum Likelihood Reinforcement Learning
Paper: arXiv 2602.02710 (2026)
Claim: Up to 20 times fewer samples than GRPO at test time for the same pass@k, and no worse pass@1.
Acts: advantage > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import MaximumLikelihood
from strop.training.losses.reinforce import Reinforce


def maxrl(setting: Setting = Setting()) -> Run:
    """REINFORCE in which successes on hard tasks have the largest advantages."""
    return setting.run("maxrl", MaximumLikelihood(), (Reinforce(),))
