"""ADCL's order (2505.08364): easy to hard, cut into batches, each sorted anew by what is known when it comes.

Reading: the paper tries the next batch out with the current policy; here the run's belief says how likely a task is
solved, at no cost. At the start it knows nothing, and the levels of worlds stand for difficulty; chance decides between
equals. After the last batch all tasks are sorted and cut again.
Papers: adcl-egsr
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from strop.control.samplers.support.task_pool import Pool
from strop.errors import ConfigurationError
from strop.roles import Belief, Sampler, World
from strop.types import Group, Metrics, Task


@dataclass
class Resorted(Sampler):
    """All tasks once from easy to hard; no task crosses from one batch to another after they were cut."""

    worlds: tuple[World, ...]
    size: int = 64  # tasks of each world
    batches: int = 8  # of all tasks
    seed: int = 0  # of the order of equals
    _pool: Pool = field(init=False, repr=False, compare=False)
    _order: list[int] = field(default_factory=list, init=False, repr=False, compare=False)
    _num_drawn: int = field(default=0, init=False, repr=False, compare=False)
    _inverted: float = field(default=0.0, init=False, repr=False, compare=False)  # share of pairs, of the last sorting

    def __post_init__(self) -> None:
        self._pool = Pool(self.worlds, self.size)
        if not 1 <= self.batches <= len(self._pool):
            raise ConfigurationError(
                f"Resorted needs 1 <= batches <= tasks, got {self.batches} and {len(self._pool)} tasks"
            )

    def next(self, step: int, belief: Belief) -> Task:
        epoch, place = divmod(self._num_drawn, len(self._pool))
        bounds = [batch * len(self._pool) // self.batches for batch in range(self.batches + 1)]
        if place == 0:
            self._order = self._cut(epoch, step, belief)
        elif place in bounds:
            self._resort(slice(place, bounds[bounds.index(place) + 1]), step, belief)
        self._num_drawn += 1
        return self._pool.task(self._order[place])

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says which share of the pairs of a batch changed places when it was sorted last."""
        return {"inversion_rate": self._inverted}

    def state(self) -> dict[str, Any]:
        return {"order": list(self._order), "num_drawn": self._num_drawn, "inverted": self._inverted}

    def restore(self, state: dict[str, Any]) -> None:
        self._order, self._num_drawn = [int(place) for place in state["order"]], int(state["num_drawn"])
        self._inverted = float(state["inverted"])

    def _cut(self, epoch: int, step: int, belief: Belief) -> list[int]:
        """All places from easy to hard."""
        tasks = self._pool.tasks(range(len(self._pool)))
        chance = np.random.default_rng([self.seed, epoch]).random(len(tasks))
        levels = np.array([task.level for task in tasks])
        order = np.lexsort((chance, levels, -belief.foresee(tasks, step)[0]))
        return [int(place) for place in order]

    def _resort(self, batch: slice, step: int, belief: Belief) -> None:
        before = self._order[batch]
        easy = belief.foresee(self._pool.tasks(before), step)[0]  # [B]
        order = np.argsort(-easy, kind="stable")
        self._order[batch] = [before[place] for place in order]
        self._inverted = inversion_rate([int(place) for place in order])


def inversion_rate(order: Sequence[int]) -> float:
    """The share of all pairs that stand the other way round than their numbers; 0 for fewer than two."""
    values = np.asarray(order)
    flipped = np.triu(values[:, None] > values[None, :], 1).sum()
    return float(flipped / max(len(values) * (len(values) - 1) / 2, 1))
