"""Rollout budgets in waves: a fixed number of waves, or another wave if all rollouts failed.

Papers: ghpo, guide, relift, seele
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.roles import Budget
from strop.success import is_lost
from strop.types import Group

# A task is tried in waves of equal size, again and again or only while the last wave failed (GHPO, SEELE).
#
# Reading: lost is a wave without any success, one rollout of which at least ended by itself; what that wave read
# does not matter. Rollouts that the environment failed never count.


@dataclass(frozen=True)
class InWaves(Budget):
    """`size` rollouts in each of up to `waves` waves; the strategy decides what later waves sample."""

    size: int = 8  # rollouts of one wave
    waves: int = 4  # of one task, at most
    only_when_lost: bool = False  # the next wave comes only where the whole last one failed

    def __post_init__(self) -> None:
        if self.size < 1 or self.waves < 1:
            raise ConfigurationError(f"InWaves needs size >= 1 and waves >= 1, got {self.size} and {self.waves}")

    @property
    def needs_success(self) -> bool:
        return self.only_when_lost

    def rollouts(self, group: Group) -> int:
        made = len(group.rollouts)
        if made >= self.size * self.waves:
            return 0
        is_over = made and self.only_when_lost and not is_lost(group.rollouts[-self.size :])
        return 0 if is_over else self.size


# A second wave of rollouts where the whole first one failed (Guide, 2506.13923; ReLIFT, 2506.07527).
#
# Reading: lost is a task whose own rollouts had no success at all. Rollouts that were only cut off say nothing about
# how hard it is, and those that the environment failed never count.


@dataclass(frozen=True)
class AgainWhenLost(Budget):
    """`size` rollouts per task, and `more` if none succeeded; the strategy decides what those sample."""

    size: int = 8  # rollouts of every task
    more: int = 8  # rollouts more, where all failed

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.size < 1 or self.more < 0:
            raise ConfigurationError(f"AgainWhenLost needs size >= 1 and more >= 0, got {self.size} and {self.more}")

    def rollouts(self, group: Group) -> int:
        if not group.rollouts:
            return self.size
        is_first = len(group.rollouts) <= self.size
        return self.more if is_first and is_lost(group.own) else 0
