"""MAYE's rule for replies without an end (2504.02587): their whole score is replaced, a right answer in them or not.

Papers: rl-scaling-vlm
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.filter.reward_values import plain_marks
from strop.roles import Reward
from strop.types import Group, Outcome, Trajectory


@dataclass(frozen=True)
class WholeOrLess(Reward):
    """The weighted sum of `parts`; `instead` for an attempt that was cut off, or wrote fewer tokens than `least`."""

    parts: tuple[Reward, ...]
    instead: float = -0.1
    least: int = 1  # tokens of an attempt
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # where its parts are
    name: ClassVar[str] = "whole_or_less"

    def __post_init__(self) -> None:
        if not self.parts or self.least < 0:
            raise ConfigurationError(f"WholeOrLess needs parts and least >= 0, got {len(self.parts)} and {self.least}")

    def __call__(self, group: Group) -> list[float]:
        marks = [[part.weight * mark for mark in plain_marks(self, part, group)] for part in self.parts]
        sums = [sum(each) for each in zip(*marks, strict=True)]
        return [self._mark(attempt, total) for attempt, total in zip(group.trajectories, sums, strict=True)]

    def _mark(self, attempt: Trajectory, total: float) -> float:
        is_whole = attempt.outcome is Outcome.FINISHED and attempt.num_tokens >= self.least
        return total if is_whole else self.instead
