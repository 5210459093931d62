"""GDRO's attempts (2601.19280): bins of tasks whose outcomes vary more have more of them, at a fixed mean.

The paper lets a bandit per bin choose among numbers of attempts by what they bring less their price. Reading: what n
attempts bring is known, it is the variance v / n that is left in the mean of a bin's rewards, so the best n is counted
out: n = sqrt(v) / price, the paper's square-root law. v is the bin's running variance of outcomes within a group; its
rate is that of the paper's arms, and the step of the price is the paper's 0.05 for a group of twice the mean.
Papers: gdro
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from strop.control.budgets.support.resource_price import Price
from strop.control.pass_bins import pass_bin
from strop.control.samplers.support.deferred_updates import Filed
from strop.errors import ConfigurationError
from strop.roles import Budget
from strop.success import success
from strop.types import Group, Metrics

_LARGEST = 0.25  # variance of an outcome that is 0 or 1, and what a bin that nobody saw is taken for


@dataclass
class ShadowPrice(Budget):
    """mean * sqrt(v / 0.25) / price attempts in a bin of variance v, from `least` to `most`."""

    mean: float = 4.0  # attempts of a group, on average
    least: int = 2
    most: int = 12
    bins: int = 10  # of how likely one of `tries` attempts is right
    tries: int = 8  # attempts of which one shall be right
    rate: float = 0.4  # of the latest version in a bin's variance
    _price: Price = field(init=False, repr=False, compare=False)
    _variances: list[float] = field(default_factory=list, init=False, repr=False, compare=False)
    _filed: Filed = field(default_factory=Filed, init=False, repr=False, compare=False)
    _version: int = field(default=0, init=False, repr=False, compare=False)  # up to which it has learned

    def __post_init__(self) -> None:
        if not 2 <= self.least < self.mean < self.most:
            raise ConfigurationError(
                f"ShadowPrice needs 2 <= least < mean < most, got {self.least}, {self.mean} and {self.most}"
            )
        if self.bins < 1 or self.tries < 1 or not 0 < self.rate <= 1:
            raise ConfigurationError(f"ShadowPrice needs bins >= 1, tries >= 1 and 0 < rate <= 1, got {self}")
        self._price = Price(self.mean)
        self._variances = [_LARGEST] * self.bins

    def attempts(self, group: Group) -> int:
        if group.trajectories:
            return 0
        if group.version > self._version:  # what came in under earlier weights is learned from now, all at once
            self._version = group.version
            self._update()
        variance = self._variances[pass_bin(group, self.bins, self.tries)]
        wanted = self.mean * math.sqrt(variance / _LARGEST) / self._price.value
        return min(max(math.floor(wanted + 0.5), self.least), self.most)

    def observe(self, group: Group) -> None:
        self._price.pay(len(group.trajectories))
        outcomes = np.array([success(attempt) for attempt in group.own])
        if len(outcomes) > 1:
            place = pass_bin(group, self.bins, self.tries)
            self._filed.add(group, place, float(outcomes.var(ddof=1)), len(outcomes) - 1)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says what an attempt costs now, and how unevenly they were allotted."""
        sizes = [len(group.trajectories) for group in groups]
        return {"price": self._price.value, "attempts_spread": float(max(sizes, default=0) - min(sizes, default=0))}

    def _update(self) -> None:
        rows = self._filed.take()
        for place, before in enumerate(self._variances):
            seen = [(variance * weight, weight) for _, _, of, variance, weight in rows if of == place]
            if seen:
                found = sum(total for total, _ in seen) / sum(weight for _, weight in seen)
                self._variances[place] = before + self.rate * (found - before)

    def state(self) -> dict[str, Any]:
        return {
            "price": self._price.state(),
            "variances": list(self._variances),
            "filed": self._filed.state(),
            "version": self._version,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._price.restore(state["price"])
        self._variances = [float(each) for each in state["variances"]]
        self._filed.restore(state["filed"])
        self._version = int(state["version"])
