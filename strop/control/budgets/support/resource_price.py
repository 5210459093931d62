"""Price of a rollout by dual ascent, to hold the mean group size without waiting for a whole batch.

Allocating an exact mean over a batch would need the whole batch first. With a price no group waits: each buys as many
rollouts as are worth it, and the price rises after a group above the mean and falls after one below. With lag, groups
pay when they finish; payments are summed, so the price does not depend on their order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from strop.errors import ConfigurationError


@dataclass
class Price:
    """first * exp(rate * (rollouts paid for / mean - groups that paid)).

    Over the groups that paid, the average spent differs from `mean` by mean * |ln(value / first)| / (rate * groups),
    which goes to 0 as long as some price is too high and some price is too low.
    """

    mean: float  # rollouts that a group may have, on average
    rate: float = 0.05  # how far the price moves, in logarithms, for a group that spent twice the mean
    first: float = 1.0  # before anything was paid
    _paid: int = field(default=0, init=False, repr=False, compare=False)  # rollouts
    _groups: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.mean <= 0 or self.rate <= 0 or self.first <= 0:
            raise ConfigurationError(
                f"A price needs mean, rate and first above 0, got {self.mean}, {self.rate} and {self.first}"
            )

    @property
    def value(self) -> float:
        return self.first * math.exp(self.rate * (self._paid / self.mean - self._groups))

    def pay(self, rollouts: int) -> None:
        """A group is done and had so many; 0 is an answer, too."""
        self._paid += rollouts
        self._groups += 1

    def state(self) -> dict[str, Any]:
        return {"paid": self._paid, "groups": self._groups}

    def restore(self, state: dict[str, Any]) -> None:
        self._paid, self._groups = int(state["paid"]), int(state["groups"])
