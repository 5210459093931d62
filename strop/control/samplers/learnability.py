"""Sampling for learnability (SFL, 2408.15099): tasks of highest success variance, mixed with uniform ones.

Reading: what p (1 - p) is expected to be is m (1 - m) - v by the run's pass-rate estimator, whose mean m and variance v
are of p: a task that is known to be even is worth more than one of which nothing is known. The estimate from rollouts
alone, share
* (1 - share) * G / (G - 1), needs the same rollouts of every task first; here the visits of training are the estimate.
Papers: sfl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from strop.control.samplers.support.pending_choices import PendingChoices
from strop.control.samplers.support.task_pool import Pool
from strop.control.seeded_choice import Doubles, highest
from strop.errors import ConfigurationError
from strop.roles import Environment, PassRateEstimator, Sampler
from strop.types import FloatArray, Group, Metrics, Task


@dataclass
class Learnability(Sampler):
    """One of the `kept` tasks of highest score, or with probability `others` any task.

    No task comes twice under the same weights before all others came.
    """

    envs: tuple[Environment, ...]
    tasks: int = 256  # of each environment, to choose from
    kept: int = 32  # tasks of highest score
    others: float = 0.5  # share of draws from the whole pool
    seed: int = 0
    _pool: Pool = field(init=False, repr=False, compare=False)
    _pending: PendingChoices = field(default_factory=PendingChoices, init=False, repr=False, compare=False)
    _usual: float = field(default=0.0, init=False, repr=False, compare=False)  # expected score of the whole pool

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.kept < 1 or not 0 <= self.others <= 1:
            raise ConfigurationError(
                f"Learnability needs kept >= 1 and others from 0 to 1, got {self.kept} and {self.others}"
            )
        self._pool = Pool(self.envs, self.tasks)

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        return self._pool.task(self._pending.next(step, lambda number: self._mixed(step, estimator, number)))

    def _mixed(self, step: int, estimator: PassRateEstimator, number: int) -> list[int]:
        """All places: at each turn probability says which of two shuffled lists the next one comes from."""
        scores = learnability(*estimator.predict(self._pool.tasks(range(len(self._pool))), step))
        self._usual = float(scores.mean())
        random = np.random.default_rng([self.seed, number, 0])
        best = list(random.permutation(highest(scores, self.kept, (self.seed, number, 1))))
        every = list(random.permutation(len(scores)))
        order: dict[int, None] = {}
        while len(order) < len(scores):
            rest = every if random.random() < self.others or not best else best
            if rest:
                order.setdefault(int(rest.pop(0)))
        return list(order)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says by how much the expected score of what was tried is above that of the pool."""
        known = np.array([group.predicted for group in groups if group.predicted is not None]).reshape(-1, 2)
        return {"score_gain": float(learnability(*known.T).mean()) - self._usual if len(known) else 0.0}

    def state(self) -> dict[str, Any]:
        return {"pending": self._pending.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._pending.restore(state["pending"])


def learnability(means: FloatArray, variances: FloatArray) -> Doubles:
    """The expected p (1 - p) of tasks whose p has this mean and variance: [N]."""
    mean, variance = means.astype(np.float64), variances.astype(np.float64)
    return np.asarray(mean * (1 - mean) - variance)
