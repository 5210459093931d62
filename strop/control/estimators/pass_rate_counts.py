"""Beta-Bernoulli pass-rate estimators: success counts per task, or per kind of task.

Papers: cures, vade
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from strop.errors import ConfigurationError
from strop.roles import PassRateEstimator
from strop.success import kind, successes
from strop.types import FloatArray, Group, Task

# The share of right rollouts of each kind of task: the plainest pass-rate estimator, and the control of all others.


@dataclass
class Counts(PassRateEstimator):
    """Beta(1 + right, 1 + wrong) per environment and level; without decay, so the order of groups does not matter."""

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


# How often each task was solved, older rollouts counting less; of a task never tried, nothing is known.
#
# VADE (2511.18902) forgets at two admissions: all tasks a little with every version, and a task more when it is tried
# again. Reading: both factors are ours, the paper's were not found. The first goes by versions of the weights, not by
# groups seen, or a run that generates faster would forget faster. A group that comes in after a later one of its task
# counts as what is left of it by then. CurES (2510.01037) forgets nothing: both factors are 1.

_KNOWN = 20_000  # tasks remembered, those tried last


@dataclass
class TaskCounts(PassRateEstimator):
    """Beta(1 + right, 1 + wrong) per task; counts decay by `per_version` each version and by `per_visit` at each
    visit.
    """

    per_version: float = 0.99  # share of a count that is left one version later
    per_visit: float = 0.7  # share of it that is left when the task is tried again
    _seen: dict[str, tuple[float, float, int]] = field(default_factory=dict, init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.per_version <= 1 or not 0 < self.per_visit <= 1:
            raise ConfigurationError(
                f"TaskCounts needs shares above 0 and at most 1, got {self.per_version} and {self.per_visit}"
            )

    def predict(self, tasks: Sequence[Task], step: int) -> tuple[FloatArray, FloatArray]:
        known = [self._seen.get(task.id, (0.0, 0.0, step)) for task in tasks]
        right, count, version = np.array(known, dtype=np.float64).reshape(-1, 3).T
        left = self.per_version ** np.maximum(step - version, 0)
        mean = (right * left + 1) / (count * left + 2)
        variance = mean * (1 - mean) / (count * left + 3)
        return mean.astype(np.float32), variance.astype(np.float32)

    def observe(self, group: Group) -> None:
        right, count = successes(group)
        if not count:
            return
        before = self._seen.pop(group.task.id, None)
        if before is None:
            self._seen[group.task.id] = (right, count, group.version)
        else:
            self._seen[group.task.id] = self._joined(before, (right, count, group.version))
        while len(self._seen) > _KNOWN:
            del self._seen[next(iter(self._seen))]

    def _joined(self, one: tuple[float, float, int], other: tuple[float, float, int]) -> tuple[float, float, int]:
        """The older of both, as far as it is left, and the newer."""
        older, newer = sorted((one, other), key=lambda each: each[2])
        left = self.per_visit * self.per_version ** (newer[2] - older[2])
        return older[0] * left + newer[0], older[1] * left + newer[1], newer[2]

    def state(self) -> dict[str, Any]:
        return {"seen": {task: list(known) for task, known in self._seen.items()}}

    def restore(self, state: dict[str, Any]) -> None:
        self._seen = {task: (float(r), float(n), int(version)) for task, (r, n, version) in state["seen"].items()}
