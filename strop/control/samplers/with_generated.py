"""Sampler that mixes tasks generated during the run with those of another sampler.

With a `band`, generated tasks are used only if the pass-rate estimator predicts a pass rate within it, as WebRL
(2411.02337) does with its critic.

Papers: webrl
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from strop.errors import ConfigurationError
from strop.roles import PassRateEstimator, Sampler
from strop.stats.task_lineage import plain, unplain
from strop.types import Task

MOST = 256  # written tasks that wait; beyond, the oldest is forgotten
_ROUNDING = 1e-9


@dataclass
class WithWritten(Sampler):
    """Each generated task once, the oldest first; an evenly spread `share` of all samples as long as any is queued."""

    inner: Sampler
    share: float = 0.5  # of the batches; what is not written by then comes from the inner sampler
    band: tuple[float, float] = (0.0, 1.0)  # success to predict; what lies outside when its turn comes is forgotten
    _waiting: dict[str, Task] = field(default_factory=dict, init=False, repr=False, compare=False)  # by id
    _num_drawn: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ConfigurationError(f"WithWritten needs 0 < share <= 1, got {self.share}")
        if not 0 <= self.band[0] <= self.band[1] <= 1:
            raise ConfigurationError(f"WithWritten needs a band within 0..1, the lower end first, got {self.band}")

    def offer(self, task: Task) -> None:
        self._waiting.setdefault(task.id, task)
        while len(self._waiting) > MOST:
            del self._waiting[next(iter(self._waiting))]

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        self._num_drawn += 1
        is_due = self._quota(self._num_drawn) > self._quota(self._num_drawn - 1)
        while is_due and self._waiting:
            task = self._waiting.pop(next(iter(self._waiting)))
            if self._is_within(task, step, estimator):
                return task
        return self.inner.next(step, estimator)

    def _is_within(self, task: Task, step: int, estimator: PassRateEstimator) -> bool:
        low, high = self.band
        return (low, high) == (0.0, 1.0) or low <= float(estimator.predict([task], step)[0][0]) <= high

    def _quota(self, draws: int) -> int:
        return math.floor(draws * self.share + _ROUNDING)

    def state(self) -> dict[str, Any]:
        return {"num_drawn": self._num_drawn, "waiting": [plain(task) for task in self._waiting.values()]}

    def restore(self, state: dict[str, Any]) -> None:
        self._num_drawn = int(state["num_drawn"])
        self._waiting = {data["id"]: unplain(data) for data in state["waiting"]}
