"""Indexed task pool of a sampler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from strop.errors import ConfigurationError
from strop.roles import Environment
from strop.types import Task


class OfEndless(int):
    """Default number of tasks of an endless environment; of a finite one, such as a table, all are taken."""


def covering(envs: Sequence[Environment], count: int) -> int:
    """How many tasks of each environment a pool takes: `count` where it was asked for, else all that a table has."""
    known = [size for env in envs if (size := env.num_tasks()) is not None]
    return max([int(count), *known]) if isinstance(count, OfEndless) else count


@dataclass
class Pool:
    """All tasks of finite environments and the first `size` of endless ones; each is built on demand."""

    envs: tuple[Environment, ...]
    size: int  # most tasks of each environment
    _starts: list[int] = field(
        default_factory=list, init=False, repr=False, compare=False
    )  # of each environment, then all
    _tasks: dict[int, Task] = field(default_factory=dict, init=False, repr=False, compare=False)
    _places: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)  # by id, once asked

    def __post_init__(self) -> None:
        if not self.envs or self.size < 1:
            raise ConfigurationError(f"A pool needs environments and size >= 1, got {len(self.envs)} and {self.size}")
        self._starts = [0]
        for env in self.envs:
            known = env.num_tasks()
            if known == 0:
                raise ConfigurationError(f"{env.name}:{env.level} has no tasks to train on")
            self._starts.append(self._starts[-1] + (self.size if known is None else min(known, self.size)))

    def __len__(self) -> int:
        return self._starts[-1]

    def env(self, place: int) -> int:
        """Which of the environments the task of a place comes from."""
        return next(env for env in range(len(self.envs)) if place < self._starts[env + 1])

    def task(self, place: int) -> Task:
        if place not in self._tasks:
            env = self.env(place)
            self._tasks[place] = self.envs[env].task(place - self._starts[env])
        return self._tasks[place]

    def tasks(self, places: Sequence[int]) -> list[Task]:
        return [self.task(place) for place in places]

    def place(self, task: Task) -> int | None:
        """Where a task stands, None: not here; an environment that repeats itself has it once, at its first place.

        All are made for it, once: which place is the first must not depend on who was chosen before.
        """
        if not self._places:
            for place in range(len(self)):
                self._places.setdefault(self.task(place).id, place)
        return self._places.get(task.id)
