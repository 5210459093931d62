"""Attempts of high and low entropy (or length) compared with each other, without saying which is better.

Title: Conditional Advantage Estimation for Reinforcement Learning in Large Reasoning Models
Paper: arXiv 2509.23962 (2025)
Claim: By entropy it reasons better, by length it saves tokens, with no preference set in advance.
Reading: A group of which one attempt counts gets 0, where the release gives the bare reward.
Acts: credit_beside_rewards > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.conditional import Conditional
from strop.training.losses.clip import Clip
from strop.training.reductions.constant_length import ConstantLength


def canon(
    setting: Setting = Setting(),
    metric: str = "entropy",  # entropy or length
    mix: float = 1.0,  # share of the comparison with the other half; 0.5 is Dr. GRPO
    cycles: int = 0,  # cosine restarts of `mix`; the paper has 3, with a peak of 0.6
    low: float = 0.2,  # the lower bound of a ratio is 1 - low
    high: float = 0.28,  # the upper bound of a ratio is 1 + high
) -> Run:
    """`mix` 0.5 is Dr. GRPO; `metric` is entropy or length."""
    reduction = ConstantLength(setting.max_tokens)
    advantage = Conditional(metric, mix, cycles=cycles, steps=setting.steps)
    return setting.run("canon", advantage, (Clip(low, high),), reduction=reduction)
