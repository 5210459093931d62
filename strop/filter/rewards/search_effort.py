"""RLSP's push towards search (2502.06773), where nobody is asked: a price on short working that vanishes as it grows.

It is no bonus per token: doubling the working of n tokens earns price / (2n), less and less.
Papers: rlsp
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.think_tags import CLOSE
from strop.errors import ConfigurationError
from strop.roles import Reward
from strop.types import Group

_CHARACTERS = 4  # of a token, as released


@dataclass(frozen=True)
class SearchEffort(Reward):
    """-price / n, n being a fourth of the characters before the answer and at least `least`."""

    price: float = 1000.0  # as released, for working of thousands of tokens
    least: float = 1.0  # tokens that the shortest working counts as, or the price would have no bound
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.price < 0 or self.least <= 0:
            raise ConfigurationError(f"SearchEffort needs price >= 0 and least > 0, got {self.price} and {self.least}")

    def __call__(self, group: Group) -> list[float]:
        lengths = [len(_working(attempt.reply)) / _CHARACTERS for attempt in group.trajectories]
        return [-self.price / max(length, self.least) for length in lengths]


def _working(reply: str) -> str:
    """What stands before the answer; a reply that never comes to one is all working."""
    before, closed, _ = reply.rpartition(CLOSE)
    return before if closed else reply
