"""DOTS's choice (2506.05316): tasks drawn by chance, the likelier the nearer their success lies to a target.

Without replacement, in proportion to exp(-|p - target| / temperature); at the paper's temperature of 1/1000 nearly the
nearest. Reading: the paper tries a reference set before each choice and throws its attempts away; here a share of all
tasks is drawn uniformly, is trained on as the others, and serves the forecast of the next choices.
Papers: dots-rr
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from strop.control.samplers.support.pending_choices import Hand
from strop.control.samplers.support.task_pool import Pool
from strop.control.seeded_choice import drawn, softmax
from strop.errors import ConfigurationError
from strop.roles import Belief, Sampler, World
from strop.types import Group, Metrics, Task


@dataclass
class NearTarget(Sampler):
    """`count` different tasks of a pool for every `every` versions of the weights, `uniform` of them by mere chance."""

    worlds: tuple[World, ...]
    pool: int = 256  # most tasks of each world, which come back
    count: int = 16  # tasks that are chosen together
    uniform: int = 4  # of them that are drawn uniformly
    target: float = 0.5  # the chance of success that teaches most
    temperature: float = 1e-3  # distance from the target at which a task is 1/e as likely
    every: int = 2  # versions of the weights that a choice is for
    seed: int = 0  # of what chance decides

    _pool: Pool = field(init=False, repr=False, compare=False)
    _hand: Hand = field(default_factory=Hand, init=False, repr=False, compare=False)
    # mean distances from the target, of those chosen by the belief and of the pool
    _distances: tuple[float, float] = field(default=(0.0, 0.0), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._pool = Pool(self.worlds, self.pool)
        if not 0 <= self.uniform < self.count <= len(self._pool):
            raise ConfigurationError(
                f"NearTarget needs 0 <= uniform < count <= tasks in the pool, got {self.uniform}, {self.count} and "
                f"{len(self._pool)}"
            )
        if not 0 <= self.target <= 1 or self.temperature <= 0 or self.every < 1:
            raise ConfigurationError(
                "NearTarget needs 0 <= target <= 1, temperature > 0 and every >= 1, got "
                f"{self.target}, {self.temperature} and {self.every}"
            )

    def next(self, step: int, belief: Belief) -> Task:
        choose = self._hand.next(step // self.every, lambda choice: self._choose(step, belief, choice))
        return self._pool.task(choose)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how near the last choice came, and by how much nearer than the pool."""
        chosen, pool = self._distances
        return {"chosen_distance": chosen, "nearer_by": pool - chosen}

    def state(self) -> dict[str, Any]:
        return {"hand": self._hand.state(), "distances": list(self._distances)}

    def restore(self, state: dict[str, Any]) -> None:
        self._hand.restore(state["hand"])
        self._distances = (float(state["distances"][0]), float(state["distances"][1]))

    def _choose(self, step: int, belief: Belief, choice: int) -> list[int]:
        places = range(len(self._pool))
        uniform = drawn(np.ones(len(places)), self.uniform, (self.seed, choice, 1))
        means, _ = belief.foresee(self._pool.tasks(places), step)
        distances = np.abs(means.astype(np.float64) - self.target)  # [P]
        weights = softmax(-distances, self.temperature)
        weights[uniform] = 0
        chosen = drawn(weights, self.count - self.uniform, (self.seed, choice))
        self._distances = float(distances[chosen].mean()), float(distances.mean())
        return uniform + chosen
