"""Satori's reward (2502.02508): right or wrong, more for a wrong beginning mended, less for a right one spoiled.

Papers: satori
"""

from __future__ import annotations

from dataclasses import dataclass

from strop.filter.reward_values import plain_marks
from strop.roles import Reward
from strop.success import RESTART, is_right
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class RestartBonus(Reward):
    """0 where `judge` gives at least 1, else -1; `bonus` more if a wrong attempt was restarted and mended, `bonus` less
    if a right one was restarted and spoiled."""

    judge: Reward
    bonus: float = 0.5
    weight: float = 1.0

    @property
    def is_inline(self) -> bool:
        return self.judge.is_inline

    def __call__(self, group: Group) -> list[float]:
        marks = plain_marks(self, self.judge, group)
        return [self._mark(attempt, is_right(mark)) for attempt, mark in zip(group.trajectories, marks, strict=True)]

    def _mark(self, attempt: Trajectory, is_right: bool) -> float:
        began = attempt.facts.get(RESTART, 0.0)
        if is_right:
            return self.bonus if began < 0 else 0.0
        return -1.0 - (self.bonus if began > 0 else 0.0)
