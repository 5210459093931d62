"""Lite PPO: the group's mean, the draw's spread, the token mean, PPO's clip, and nothing else.

Title: Part I: Tricks or Traps? A Deep Dive into RL for LLM Reasoning
Paper: arXiv 2508.08221 (2025)
Claim: These two techniques on plain PPO steps are better than GRPO and DAPO.
Reading: The spread is that of the raw rewards. `high` up to 0.32 is one of the switches the paper isolates.
Acts: credit > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.shared_spread import SharedSpread
from strop.training.losses.clip import Clip
from strop.training.reductions.token_mean import TokenMean


def tricks_or_traps(
    setting: Setting = Setting(),
    low: float = 0.2,  # the lower bound of a ratio is 1 - low
    high: float = 0.2,  # the upper bound of a ratio is 1 + high
) -> Run:
    """The two techniques the paper keeps; `high` up to 0.32 is one of the switches it isolates."""
    return setting.run("tricks_or_traps", SharedSpread(), (Clip(low, high),), reduction=TokenMean())
