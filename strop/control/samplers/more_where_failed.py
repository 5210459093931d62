"""CORE's choice of tasks (2605.28742): a handful, those that fail more often.

Reading: a task's weight is (failures + 1) / (attempts + 2), of all attempts that count, with help or without: what is
to be improved is the policy with its memory. The paper says only that failures come more often.
Papers: core
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from strop.control.samplers.support.bandit_metrics import preference
from strop.control.samplers.support.pending_choices import Hand
from strop.control.samplers.support.task_pool import Pool
from strop.control.seeded_choice import Doubles, drawn
from strop.roles import Belief, Sampler, World
from strop.success import success
from strop.types import Group, Metrics, Task


@dataclass
class MoreWhereFailed(Sampler):
    """All tasks of a small pool are ordered anew for every version, by chance in proportion to their weights.

    None is tried twice under the same weights before all were. What counts is a sum: the order of groups does not.
    """

    worlds: tuple[World, ...]
    tasks: int = 5  # of each world
    seed: int = 0
    _pool: Pool = field(init=False, repr=False, compare=False)
    _hand: Hand = field(default_factory=Hand, init=False, repr=False, compare=False)
    _seen: dict[int, tuple[float, int]] = field(default_factory=dict, init=False, repr=False, compare=False)

    repeats: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._pool = Pool(self.worlds, self.tasks)

    def next(self, step: int, belief: Belief) -> Task:
        return self._pool.task(self._hand.next(step, lambda number: self._ordered(number)))

    def observe(self, group: Group) -> None:
        if (place := self._pool.place(group.task)) is not None:
            failures, count = self._seen.get(place, (0.0, 0))
            failed = sum(1 - success(attempt) for attempt in group.scored)
            self._seen[place] = failures + failed, count + len(group.scored)

    def weights(self) -> Doubles:
        """Of each task: [N]."""
        seen = [self._seen.get(place, (0.0, 0)) for place in range(len(self._pool))]
        return np.array([(failures + 1) / (count + 2) for failures, count in seen])

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how far a choice is from an even one."""
        return {"preference": preference(self.weights() / self.weights().sum())}

    def _ordered(self, number: int) -> list[int]:
        return drawn(self.weights(), len(self._pool), (self.seed, number))

    def state(self) -> dict[str, Any]:
        return {"hand": self._hand.state(), "seen": [[place, *seen] for place, seen in sorted(self._seen.items())]}

    def restore(self, state: dict[str, Any]) -> None:
        self._hand.restore(state["hand"])
        self._seen = {int(place): (float(failures), int(count)) for place, failures, count in state["seen"]}
        self._pool.tasks(range(len(self._pool)))  # so that groups in flight are known when they come
