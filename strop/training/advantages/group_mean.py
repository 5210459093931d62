"""Dr. GRPO's advantage (Liu et al., 2503.20783): each rollout against the mean of its group, without the division.

Papers: dr-grpo
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.roles import Advantage
from strop.types import Group


@dataclass(frozen=True)
class GroupMean(Advantage):
    """A = r - mean. The mean holds the rollout itself: the expected gradient is (G - 1) / G of the true one."""

    min_group: ClassVar[int] = 2
    is_local: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            rewards = group.rewards - group.rewards[:1]  # [G]; equal ones give exactly 0
            for rollout, reward in zip(group.scored, rewards, strict=True):
                rollout.set_advantage(float(reward - rewards.mean()))
