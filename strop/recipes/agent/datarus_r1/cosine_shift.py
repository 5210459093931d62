"""Cosine schedule from one reward to another (Datarus-R1, 2508.13382).

Reading (the formula is ours): the time is the version at which a group was admitted, also after a resume.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from strop.errors import ConfigurationError
from strop.filter.reward_values import RewardScores, shaped
from strop.roles import Reward
from strop.types import Group


@dataclass(frozen=True)
class CosineShift(Reward):
    """w * first + (1 - w) * second, with w = (1 + cos(pi t / total)) / 2 at version t, and 0 from `total` on."""

    first: Reward
    second: Reward
    total: int  # versions after which the second one counts alone

    def __post_init__(self) -> None:
        if self.total < 1:
            raise ConfigurationError(f"CosineShift needs total >= 1, got {self.total}")

    @property
    def is_inline(self) -> bool:
        return self.first.is_inline and self.second.is_inline

    def share(self, version: int) -> float:
        """Of the first reward."""
        return (1 + math.cos(math.pi * min(version / self.total, 1.0))) / 2

    def __call__(self, group: Group) -> RewardScores:
        share = self.share(group.version)
        for rollout in group.rollouts:
            rollout.facts["first_share"] = share

        def mixed(first: Sequence[float], second: Sequence[float]) -> list[float]:
            return [share * one + (1 - share) * other for one, other in zip(first, second, strict=True)]

        return shaped(self, group, mixed, self.first, self.second)
