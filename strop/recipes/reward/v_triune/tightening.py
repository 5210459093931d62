"""Reward threshold that rises over training (V-Triune, 2505.18129).

Training progress is the weight version at which the group was admitted, so that a resumed run continues the schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.filter.reward_values import RewardScores, shaped
from strop.roles import Reward
from strop.success import success
from strop.types import Group, Metrics, Rollout


@dataclass(frozen=True)
class Tightening(Reward):
    """Success by `inner` if it reaches the current threshold, else 0; each one applies up to a share of all steps."""

    inner: Reward
    total: int  # steps of the whole training
    thresholds: tuple[tuple[float, float], ...] = ((0.10, 0.85), (0.25, 0.95), (1.0, 0.99))  # (up to, threshold)
    weight: float = 1.0

    name: ClassVar[str] = "tightening"

    @property
    def is_inline(self) -> bool:
        return self.inner.is_inline

    def __post_init__(self) -> None:
        shares = [share for share, _ in self.thresholds]
        if self.total < 1 or not shares or shares != sorted(shares):
            raise ConfigurationError(
                f"Tightening needs total >= 1 and thresholds by ascending shares, got {self.total} and {shares}"
            )

    def threshold(self, version: int) -> float:
        """At a step; the last one holds for all that comes later."""
        done = version / self.total
        return next((threshold for share, threshold in self.thresholds if done <= share), self.thresholds[-1][1])

    def __call__(self, group: Group) -> RewardScores:
        least = self.threshold(group.version)
        return shaped(self, group, lambda _: [_at_least(least, rollout) for rollout in group.rollouts], self.inner)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Says what was asked for in this batch; nothing is remembered."""
        asked = [self.threshold(group.version) for group in groups]
        return {"threshold": sum(asked) / len(asked)} if asked else {}


def _at_least(least: float, rollout: Rollout) -> float:
    return worth if (worth := success(rollout)) >= least else 0.0
