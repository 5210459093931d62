"""Optima's price of talking (2410.08115): an attempt's tokens as a share of its longest sibling's.

Papers: optima
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.roles import Reward
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class TokenShare(Reward):
    """-price * tokens / most tokens of a sibling, all voices together; -1 for a talk that is no longer than `shortest`.

    Of two attempts that are equally good the shorter one is better, and the longest one pays exactly the price.
    """

    price: float = 0.4  # of being the longest
    shortest: int = 40  # tokens that are too few to be a talk
    weight: float = 1.0

    is_inline: ClassVar[bool] = True
    is_relative: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        most = max((attempt.num_tokens for attempt in group.trajectories), default=0)
        return [self._term(attempt, most) for attempt in group.trajectories]

    def _term(self, attempt: Trajectory, most: int) -> float:
        return -1.0 if attempt.num_tokens <= self.shortest else -self.price * attempt.num_tokens / most
