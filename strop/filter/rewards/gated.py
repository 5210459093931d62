"""Step rewards that count only where the long-term one passes a gate (G-RA, 2508.10548).

Added up as they are, they are farmed while the outcome falls. Read plainly: a closed gate shuts out penalties like
bonuses, an outcome at its gate closes it, and one that nobody knows (NaN) closes it and fails the attempt.
Papers: g-ra
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.filter.reward_values import plain_marks
from strop.filter.scoring import is_inline
from strop.roles import Reward
from strop.types import Group, Metrics


@dataclass(frozen=True)
class Gated(Reward):
    """The sum of all levels above which no gate is closed: each level but the first has one, passed by more than it."""

    levels: tuple[Reward, ...]  # by priority, the outcome last: it always counts
    gates: tuple[float, ...] = (0.0,)  # of the second level, of the third, ...
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # where its levels are
    name: ClassVar[str] = "gated"

    def __post_init__(self) -> None:
        if len(self.levels) < 2 or len(self.gates) != len(self.levels) - 1:
            raise ConfigurationError(
                f"Gated needs at least 2 levels and a gate for each but the first, got {len(self.levels)} levels and "
                f"{len(self.gates)} gates"
            )

    def __call__(self, group: Group) -> list[float]:
        return [self._sum(marks) for marks in self._marks(group)]

    def _marks(self, group: Group) -> list[tuple[float, ...]]:
        """Of each attempt, by level."""
        return list(zip(*(plain_marks(self, level, group) for level in self.levels), strict=True))

    def _first(self, marks: Sequence[float]) -> int:
        """The lowest level that counts."""
        first = len(marks) - 1
        while first > 0 and marks[first] > self.gates[first - 1]:
            first -= 1
        return first

    def _sum(self, marks: Sequence[float]) -> float:
        counted = list(zip(self.levels, marks, strict=True))[self._first(marks) :]
        return sum(level.weight * mark for level, mark in counted)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """The share of attempts whose lowest level counts, where levels may be asked here; nothing is remembered."""
        if not is_inline(self):
            return {}
        told = [marks for group in groups for marks in self._marks(replace(group, trajectories=group.scored))]
        return {"open_share": sum(self._first(marks) == 0 for marks in told) / max(len(told), 1)}
