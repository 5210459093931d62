"""Parallel-R1's rewards (2509.07980): right or wrong, and in some steps more for being right in parallel.

Papers: parallel-r1
"""

from __future__ import annotations

from dataclasses import dataclass

from strop.environments.parallel_format import num_valid_blocks
from strop.errors import ConfigurationError
from strop.filter.reward_values import plain_marks
from strop.roles import Reward
from strop.success import is_right
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class ParallelBonus(Reward):
    """1 where `judge` gives at least 1, else -1; from version `plain` on of every `period`, `bonus` more for a right
    attempt with a valid block. After version `last` there is no bonus: parallel thinking was a scaffold."""

    judge: Reward
    bonus: float = 0.2  # for a right attempt in parallel
    period: int = 10  # versions after which it begins again
    plain: int = 8  # of them without a bonus, the first
    last: int = 0  # version with a bonus; 0: all
    weight: float = 1.0

    @property
    def is_inline(self) -> bool:
        return self.judge.is_inline

    def __post_init__(self) -> None:
        if not 0 <= self.plain <= self.period or self.period < 1:
            raise ConfigurationError(
                f"ParallelBonus needs period >= 1 and 0 <= plain <= period, got {self.period} and {self.plain}"
            )

    def __call__(self, group: Group) -> list[float]:
        is_paid = group.version % self.period >= self.plain and not 0 < self.last < group.version
        bonus = self.bonus if is_paid else 0.0
        marks = plain_marks(self, self.judge, group)
        return [
            (1.0 + bonus * bool(num_valid_blocks(spoken(attempt)))) if is_right(mark) else -1.0
            for attempt, mark in zip(group.trajectories, marks, strict=True)
        ]


def spoken(attempt: Trajectory) -> str:
    """What its last context says in all: paths are contexts of their own before it."""
    first = max((index for index, turn in enumerate(attempt.turns) if turn.fresh), default=0)
    return "".join(turn.message.content for turn in attempt.turns[first:])
