"""The share of right rollouts of each kind of task: the plainest pass-rate estimator, and the control of all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from strop.roles import PassRateEstimator
from strop.success import kind, successes
from strop.types import FloatArray, Group, Task


@dataclass
class Counts(PassRateEstimator):
    """Beta(1 + right, 1 + wrong) per environment and level; nothing is forgotten, so the order of groups changes
    nothing.
    """

    _seen: dict[str, tuple[float, float]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def predict(self, tasks: Sequence[Task], step: int) -> tuple[FloatArray, FloatArray]:
        right, count = np.array([self._seen.get(kind(task), (0.0, 0.0)) for task in tasks]).T
        mean = (right + 1) / (count + 2)
        variance = mean * (1 - mean) / (count + 3)
        return mean.astype(np.float32), variance.astype(np.float32)

    def observe(self, group: Group) -> None:
        right, count = successes(group)
        before = self._seen.get(name := kind(group.task), (0.0, 0.0))
        self._seen[name] = (before[0] + right, before[1] + count)

    def state(self) -> dict[str, Any]:
        return {"seen": {name: list(pair) for name, pair in sorted(self._seen.items())}}

    def restore(self, state: dict[str, Any]) -> None:
        self._seen = {name: (float(right), float(count)) for name, (right, count) in state["seen"].items()}
