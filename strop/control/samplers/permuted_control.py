"""Negative control of curricula: each chosen task is replaced by another one, by a fixed permutation.

Observations reach the curriculum under the true task, so it knows as much as without the permutation; only the link
from knowledge to choice is cut. Probabilities, repetition and costs are unchanged: any remaining advantage does not
come from the choice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from strop.control.samplers.support.bandit_arms import BanditArms
from strop.control.samplers.support.task_pool import Pool
from strop.errors import ConfigurationError
from strop.roles import Environment, PassRateEstimator, Sampler
from strop.types import Task


@dataclass
class Permuted(Sampler):
    """Another task of the pool in place of each that `inner` chooses, or the next one of another environment.

    The permutation is a single cycle, so that no task maps to itself. Generated tasks are not permuted.
    """

    inner: Sampler
    envs: tuple[Environment, ...]  # those of `inner`
    tasks: int = 0  # most of each environment, where `inner` chooses among tasks; 0: it chooses among environments
    seed: int = 0
    _arms: BanditArms = field(init=False, repr=False, compare=False)
    _pool: Pool | None = field(default=None, init=False, repr=False, compare=False)
    _others: list[int] = field(
        default_factory=list, init=False, repr=False, compare=False
    )  # by place, or by environment

    def __post_init__(self) -> None:
        self._arms = BanditArms(self.envs)
        self._pool = Pool(self.envs, self.tasks) if self.tasks else None
        count = len(self.envs) if self._pool is None else len(self._pool)
        if count < 2:
            what = "environment: give tasks=N, if it chooses among tasks" if self._pool is None else "task"
            raise ConfigurationError(f"Permuted needs 2 to choose from, got {count} {what}")
        self._others = circle(count, self.seed)

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        task = self.inner.next(step, estimator)
        if self._pool is None:
            arm = self._arms.arm(task)
            return task if arm is None else self._arms.take(self._others[arm])
        place = self._pool.place(task)
        return task if place is None else self._pool.task(self._others[place])

    def state(self) -> dict[str, Any]:
        return self._arms.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._arms.restore(state)


def circle(count: int, seed: int) -> list[int]:
    """Who stands for each: the next one along a random order of all."""
    order = np.random.default_rng([seed, count]).permutation(count)
    others = np.empty(count, dtype=np.int64)
    others[order] = np.roll(order, -1)
    return [int(place) for place in others]
