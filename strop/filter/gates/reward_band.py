"""Reward filter of SeRL (2505.20347): only groups whose mean reward lies within a band are kept.

With majority-vote rewards, the upper bound prevents collapse to one answer for all tasks. SwS (2506.08989) has the same
filter on the environment's rewards.

Papers: serl, sws
"""

from __future__ import annotations

from dataclasses import dataclass

from strop.errors import ConfigurationError
from strop.roles import Gate
from strop.types import GateResult, Group

_ROUNDING = 1e-9


@dataclass(frozen=True)
class RewardBand(Gate):
    """Gate that keeps a group if the mean reward of its rollouts is between `low` and `high`."""

    low: float = 0.2
    high: float = 0.8

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ConfigurationError(f"RewardBand needs low <= high, got {self.low} and {self.high}")

    def __call__(self, group: Group) -> GateResult:
        if not group.scored:
            return GateResult(None, "no rollout counts")
        mean = float(group.rewards.mean())
        if self.low - _ROUNDING <= mean <= self.high + _ROUNDING:
            return GateResult(group)
        return GateResult(None, f"its mean reward is {'below' if mean < self.low else 'above'} the band")
