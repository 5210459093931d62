"""The tasks a sampler remembers and chooses from, by place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from strop.errors import ConfigurationError
from strop.roles import World
from strop.types import Task


@dataclass
class Pool:
    """All tasks of worlds that have an end, the first `size` of those that have none; each is made when asked for."""

    worlds: tuple[World, ...]
    size: int  # most tasks of each world
    _starts: list[int] = field(default_factory=list, init=False, repr=False, compare=False)  # of each world, then all
    _tasks: dict[int, Task] = field(default_factory=dict, init=False, repr=False, compare=False)
    _places: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)  # by id, once asked

    def __post_init__(self) -> None:
        if not self.worlds or self.size < 1:
            raise ConfigurationError(f"A pool needs worlds and size >= 1, got {len(self.worlds)} and {self.size}")
        self._starts = [0]
        for world in self.worlds:
            known = world.num_tasks()
            if known == 0:
                raise ConfigurationError(f"{world.name}:{world.level} has no tasks to train on")
            self._starts.append(self._starts[-1] + (self.size if known is None else min(known, self.size)))

    def __len__(self) -> int:
        return self._starts[-1]

    def world(self, place: int) -> int:
        """Which of the worlds the task of a place comes from."""
        return next(world for world in range(len(self.worlds)) if place < self._starts[world + 1])

    def task(self, place: int) -> Task:
        if place not in self._tasks:
            world = self.world(place)
            self._tasks[place] = self.worlds[world].task(place - self._starts[world])
        return self._tasks[place]

    def tasks(self, places: Sequence[int]) -> list[Task]:
        return [self.task(place) for place in places]

    def place(self, task: Task) -> int | None:
        """Where a task stands, None: not here; a world that repeats itself has it once, at its first place.

        All are made for it, once: which place is the first must not depend on who was chosen before.
        """
        if not self._places:
            for place in range(len(self)):
                self._places.setdefault(self.task(place).id, place)
        return self._places.get(task.id)
