"""A pool in which some tasks have the key of another one: they look like all others, and nobody can solve them.

What a curriculum that remembers single tasks is measured by: their source and level say nothing.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from strop.environments.wrappers.around import Around
from strop.errors import ConfigurationError
from strop.types import Task


@dataclass(frozen=True)
class Miskeyed(Around):
    """The first `tasks` of an environment, over and over, `share` of them with a wrong key; held-out ones are as they
    were.
    """

    tasks: int = 256
    share: float = 0.5  # of tasks that cannot be solved

    def __post_init__(self) -> None:
        if self.tasks < 1 or not 0 <= self.share <= 1:
            raise ConfigurationError(
                f"Miskeyed needs tasks >= 1 and a share from 0 to 1, got {self.tasks} and {self.share}"
            )

    def task(self, index: int, heldout: bool = False) -> Task:
        if heldout:
            return self.inner.task(index, heldout=True)
        place = index % self.tasks
        task = self.inner.task(place)
        return replace(task, answer=self._foreign(place, task), id="") if self.is_broken(place) else task

    def num_tasks(self, heldout: bool = False) -> int | None:
        return self.inner.num_tasks(heldout=True) if heldout else self.tasks

    def is_broken(self, place: int) -> bool:
        """Exactly `share` of all, in an order that probability made."""
        order = list(range(self.tasks))
        random.Random(f"miskeyed/{self.tasks}").shuffle(order)
        return order[place] < round(self.share * self.tasks)

    def _foreign(self, place: int, task: Task) -> str:
        """The key of a task outside of the pool, by which the completion to this one is wrong."""
        keys = (self.inner.task(self.tasks + place + further).answer for further in range(100))
        right = self.inner.answer(task.answer)
        return next(key for key in keys if self.inner.answer(key) != right)
