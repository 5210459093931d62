"""CurES's attempts (2510.01037): a task has them in proportion to how uncertain its outcome is.

For a fixed total this makes the variance of the gradient least. Readings: gradients of all attempts are taken as
equally long, which leaves sqrt(p (1 - p)) of the paper's deviation; p is what the run's belief foresaw, so that a task
of which nothing is known has the most, and its first visit is its probe. The total is kept by a price and not within
each draw, so nobody waits for the draw to be known.
Papers: cures
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from strop.control.budgets.support.resource_price import Price
from strop.errors import ConfigurationError
from strop.roles import Budget
from strop.types import Group, Metrics

_UNKNOWN = (0.5, 1 / 12)


@dataclass
class ByDeviation(Budget):
    """mean * 2 sqrt(p (1 - p)) / price attempts, from `least` to `most`; the price keeps their mean at `mean`."""

    mean: float = 8.0  # attempts of a group, on average
    least: int = 2  # one attempt alone is compared with nothing
    most: int = 32
    _price: Price = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 1 <= self.least < self.mean < self.most:
            raise ConfigurationError(
                f"ByDeviation needs 1 <= least < mean < most, got {self.least}, {self.mean} and {self.most}"
            )
        self._price = Price(self.mean)

    def attempts(self, group: Group) -> int:
        if group.trajectories:
            return 0
        chance = (group.foreseen or _UNKNOWN)[0]
        wanted = self.mean * 2 * math.sqrt(chance * (1 - chance)) / self._price.value
        return min(max(math.floor(wanted + 0.5), self.least), self.most)

    def observe(self, group: Group) -> None:
        self._price.pay(len(group.trajectories))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says what an attempt costs now, and how unevenly they were allotted."""
        sizes = [len(group.trajectories) for group in groups]
        return {"price": self._price.value, "attempts_spread": float(max(sizes, default=0) - min(sizes, default=0))}

    def state(self) -> dict[str, Any]:
        return {"price": self._price.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._price.restore(state["price"])
