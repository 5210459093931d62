"""What a rollout costs: one price for all tasks, so that rollouts are allotted over them without a barrier.

To spend a fixed mean over a batch one would have to see the whole batch first. With a price nobody waits: each group
buys what is worth it to itself, and the price is moved by dual ascent, up after a group that spent more than the mean
and down after one that spent less. At any lag groups pay when they are done; what was paid is a sum, so the price does
not depend on who was done first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from strop.errors import ConfigurationError


@dataclass
class Price:
    """first * exp(rate * (rollouts paid for / mean - groups that paid)).

    Over groups that paid, the mean spent differs from `mean` by mean * |ln(value / first)| / (rate * groups): as long
    as there is a price at which too little is bought and one at which too much is, that goes to 0.
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
