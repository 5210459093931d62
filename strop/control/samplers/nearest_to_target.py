"""Target pass-rate sampler (PCL, 2510.01135): of several candidates, the tasks whose predicted pass rate is nearest.

With the target 1/2 and an exact pass-rate estimator, no other choice has a larger sum of p(1 - p); ties are broken at
random, as all are for an estimator without data. Candidates of an endless environment are seen once; from a finite pool
they are sampled anew for each choice, so tasks come back.

Papers: pcl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from strop.control.samplers.support.pending_choices import PendingChoices
from strop.control.samplers.support.task_pool import Pool
from strop.control.seeded_choice import drawn, highest
from strop.errors import ConfigurationError
from strop.roles import Environment, PassRateEstimator, Sampler
from strop.types import Group, Metrics, Task


@dataclass
class Nearest(Sampler):
    """`count` of `count * candidates` different tasks, chosen anew for each weight version."""

    envs: tuple[Environment, ...]
    count: int = 8  # tasks that are chosen together: those of a step
    candidates: int = 4  # for each of them
    target: float = 0.5  # the probability of success that teaches most
    pool: int = (
        0  # tasks of each environment that candidates are drawn from; 0: all in turn, round-robin over environments
    )
    seed: int = 0  # of candidates, and of which goes first among equals

    _pool: Pool | None = field(default=None, init=False, repr=False, compare=False)
    _num_seen: int = field(default=0, init=False, repr=False, compare=False)  # candidates that passed by
    _pending: PendingChoices = field(default_factory=PendingChoices, init=False, repr=False, compare=False)
    # mean distances from the target, of the chosen and of all candidates
    _distances: tuple[float, float] = field(default=(0.0, 0.0), init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.envs or min(self.count, self.candidates) < 1 or self.pool < 0 or not 0 <= self.target <= 1:
            raise ConfigurationError(
                "Nearest needs environments, count >= 1, candidates >= 1, pool >= 0 and 0 <= target <= 1, got "
                f"{len(self.envs)}, {self.count}, {self.candidates}, {self.pool} and {self.target}"
            )
        self._pool = Pool(self.envs, self.pool) if self.pool else None

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        return self._task(self._pending.next(step, lambda choice: self._choose(step, estimator, choice)))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how near the last choice came, and by how much nearer than probability would have."""
        chosen, all_of_them = self._distances
        return {"chosen_distance": chosen, "nearer_by": all_of_them - chosen}

    def state(self) -> dict[str, Any]:
        return {"num_seen": self._num_seen, "pending": self._pending.state(), "distances": list(self._distances)}

    def restore(self, state: dict[str, Any]) -> None:
        self._num_seen = int(state["num_seen"])
        self._pending.restore(state["pending"])
        self._distances = (float(state["distances"][0]), float(state["distances"][1]))

    def _choose(self, step: int, estimator: PassRateEstimator, choice: int) -> list[int]:
        tasks: dict[str, tuple[int, Task]] = {}
        for place in self._candidates(choice):
            task = self._task(place)
            tasks.setdefault(task.id, (place, task))  # an environment that repeats itself has it once
        means, _ = estimator.predict([task for _, task in tasks.values()], step)
        distances = np.abs(means.astype(np.float64) - self.target)  # [K]
        nearest = highest(-distances, self.count, (self.seed, choice))
        self._distances = float(distances[nearest].mean()), float(distances.mean())
        places = [place for place, _ in tasks.values()]
        return [places[index] for index in nearest]

    def _candidates(self, choice: int) -> list[int]:
        most = self.count * self.candidates
        if self._pool is not None:
            return drawn(np.ones(len(self._pool)), most, (self.seed, choice, 1))
        first, self._num_seen = self._num_seen, self._num_seen + most
        return list(range(first, self._num_seen))

    def _task(self, place: int) -> Task:
        if self._pool is not None:
            return self._pool.task(place)
        index, turn = divmod(place, len(self.envs))
        return self.envs[turn].task(index)
