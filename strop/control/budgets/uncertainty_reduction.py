"""XRPO's planner (2510.06672): more attempts where the next one narrows what is known of a task most.

Readings: the interval is Student's of 95 % for the mean of a task's rewards, and one more attempt is taken not to
change its spread. The bonus for few attempts has the paper's square root, with as many attempts spent as if all tasks
of a draw had had as many; those that read examples are spent, too, and are no evidence of the mean. Who is among the
first of a draw is decided by a price and not by a barrier. The weight of the bonus is not published.
Papers: xrpo
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from strop.control.budgets.support.resource_price import Price
from strop.errors import ConfigurationError
from strop.roles import Budget
from strop.stats.student_t import student
from strop.success import success
from strop.types import Group, Metrics


@dataclass
class UncertaintyReduction(Budget):
    """`first` attempts, then waves of `chunk` up to `most`, as long as h(n) - h(n + 1) + bonus is worth its price.

    h(n) = t * s / sqrt(n), bonus = explore * sqrt(ln(1 + tasks * n) / n). The price keeps the mean at `mean`; it is
    that of the version at which a group began, so that it does not matter who was scored first.
    """

    first: int = 4  # attempts at every task
    chunk: int = 4  # attempts of each further wave
    mean: float = 8.0  # attempts at a task, on average
    most: int = 16
    explore: float = 0.2  # weight of the bonus for few attempts
    tasks: int = 8  # of a draw
    _price: Price = field(init=False, repr=False, compare=False)
    _asked: tuple[int, float] = field(init=False, repr=False, compare=False)  # version, and the price then

    def __post_init__(self) -> None:
        if not 2 <= self.first < self.mean < self.most or self.chunk < 1 or self.explore < 0 or self.tasks < 1:
            raise ConfigurationError(
                "UncertaintyReduction needs 2 <= first < mean < most, chunk >= 1, explore >= 0 and tasks >= 1, "
                f"got {self.first}, {self.mean}, {self.most}, {self.chunk}, {self.explore} and {self.tasks}"
            )
        self._price = Price(self.mean, first=0.1)
        self._asked = (-1, self._price.value)

    @property
    def size(self) -> int | None:
        return self.first

    def attempts(self, group: Group) -> int:
        if group.version > self._asked[0]:
            self._asked = (group.version, self._price.value)
        made = len(group.trajectories)
        if not made:
            return self.first
        return min(self.chunk, self.most - made) if self.priority(group) >= self._asked[1] else 0

    def priority(self, group: Group) -> float:
        """What the next attempt is worth; nothing where fewer than two of the policy's own count."""
        rewards = [success(attempt) for attempt in group.own]
        count = len(rewards)
        if count < 2:
            return -math.inf
        spread = float(np.std(rewards, ddof=1))
        narrower = _half_width(spread, count) - _half_width(spread, count + 1)
        spent = len(group.scored)
        return narrower + self.explore * math.sqrt(math.log(1 + self.tasks * spent) / spent)

    def observe(self, group: Group) -> None:
        self._price.pay(len(group.trajectories))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says what an attempt costs now, and how many were added to the first ones."""
        added = [max(len(group.trajectories) - self.first, 0) for group in groups]
        return {"price": self._price.value, "attempts_added": sum(added) / max(len(groups), 1)}

    def state(self) -> dict[str, Any]:
        return {"price": self._price.state(), "asked": list(self._asked)}

    def restore(self, state: dict[str, Any]) -> None:
        self._price.restore(state["price"])
        self._asked = (int(state["asked"][0]), float(state["asked"][1]))


def _half_width(spread: float, count: int) -> float:
    return student(count - 1) * spread / math.sqrt(count)
