"""SPEAR's credit for what is replayed (2509.22601): the reward against the median of late groups, with a rising weight.

Reading: the mean of its own group is out of date when an attempt comes again, so that the policy's late groups stand in
for it; the median is over the last 10,240 new groups, those of this draw among them. What is below it has credit 0 and
keeps its place in the mean. The step is that of the newest group of the draw.
Papers: spear
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.types import Group, Metrics

_LATE = 10_240  # groups whose mean rewards are remembered


@dataclass
class Recalibrated(Advantage):
    """`inner` for groups that are new; for others weight * max(reward - median, 0).

    The weight is (1 - cos(pi t / rise)) / 2 at version t, 1 from `rise` on.
    """

    inner: Advantage
    rise: int = 200  # versions over which the weight of what is replayed goes from 0 to 1
    _means: list[float] = field(default_factory=list, init=False, repr=False, compare=False)
    _weight: float = field(default=0.0, init=False, repr=False, compare=False)  # in the last draw

    def __post_init__(self) -> None:
        if self.rise < 1:
            raise ConfigurationError(f"Recalibrated needs rise >= 1, got {self.rise}")

    def weight(self, version: int) -> float:
        return (1 - math.cos(math.pi * min(version / self.rise, 1.0))) / 2

    def __call__(self, groups: Sequence[Group]) -> None:
        new = [group for group in groups if group.times_trained <= 1]
        self.inner(new)
        self._means = [*self._means, *(float(group.rewards.mean()) for group in new if group.scored)][-_LATE:]
        self._weight = self.weight(max((group.version for group in groups), default=0))
        for attempt in (each for group in groups if group.times_trained > 1 for each in group.scored):
            attempt.credit(self._weight * max(attempt.reward - self.median, 0.0))

    @property
    def median(self) -> float:
        return float(np.median(self._means)) if self._means else 0.0

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Of the last draw."""
        return {"replay_weight": self._weight, "replay_baseline": self.median}

    def state(self) -> dict[str, Any]:
        return {"means": list(self._means)}

    def restore(self, state: dict[str, Any]) -> None:
        self._means = [float(mean) for mean in state["means"]]
