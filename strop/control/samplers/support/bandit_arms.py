"""Worlds as arms: which one is a sampler's choice, its next task is not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from strop.environments.data.lookup import world_of
from strop.errors import ConfigurationError
from strop.roles import World
from strop.stats.task_lineage import is_written
from strop.types import Task


@dataclass
class Shelves:
    """The next task of each world, in the world's order."""

    worlds: tuple[World, ...]
    _taken: list[int] = field(default_factory=list, init=False, repr=False, compare=False)  # tasks of each world

    def __post_init__(self) -> None:
        kinds = [(world.name, world.level) for world in self.worlds]
        if not kinds or len(set(kinds)) < len(kinds):
            raise ConfigurationError(f"Arms need worlds that differ in name or level, got {kinds}")
        self._taken = [0] * len(self.worlds)

    def take(self, arm: int) -> Task:
        self._taken[arm] += 1
        return self.worlds[arm].task(self._taken[arm] - 1)

    def arm(self, task: Task) -> int | None:
        """Which world a task is from, as everywhere (`world_of`); None: none of these, or a writer's."""
        if is_written(task) or all(world.name != task.source for world in self.worlds):
            return None
        home = world_of(self.worlds, task)
        return next(arm for arm, world in enumerate(self.worlds) if world is home)

    def state(self) -> dict[str, Any]:
        return {"taken": list(self._taken)}

    def restore(self, state: dict[str, Any]) -> None:
        self._taken = [int(count) for count in state["taken"]]
