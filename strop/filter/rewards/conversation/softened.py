"""Failures that tried more lose less (2510.11701): every round with a tool takes a tenth off the price of a wrong end.

Papers: demystifying-agentic-rl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.roles import Reward
from strop.types import Group

_WRONG = -1.0


@dataclass(frozen=True)
class Softened(Reward):
    """1 where the world paid 1 in all; else -1 + each * (messages - 2) / 2, and never more than `least`.

    Messages are those of both sides, two for each reply, so one reply is the plain -1. Shifted, an attempt is softened
    by the replies of the sibling after it.
    """

    each: float = 0.1  # by which each reply but the last softens a failure
    least: float = -0.6  # what the softest failure costs
    shifted: bool = False  # for a control

    is_relative: ClassVar[bool] = True  # with shifted, siblings matter
    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not _WRONG <= self.least <= 0 or self.each < 0:
            raise ConfigurationError(f"Softened needs each >= 0 and -1 <= least <= 0, got {self.each}, {self.least}")

    def __call__(self, group: Group) -> Sequence[float]:
        replies = [len(attempt.turns) for attempt in group.trajectories]
        counted = replies[1:] + replies[:1] if self.shifted else replies
        pairs = zip(group.trajectories, counted, strict=True)
        return [1.0 if sum(attempt.turn_rewards) >= 1 else self._failed(2 * count) for attempt, count in pairs]

    def _failed(self, messages: int) -> float:
        return min(self.least, _WRONG + self.each * (messages - 2) / 2)
