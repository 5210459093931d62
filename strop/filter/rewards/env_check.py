"""A world's own check as a reward in a killable process, for worlds whose checker is not ours."""

from __future__ import annotations

from dataclasses import dataclass

from strop.errors import ConfigurationError
from strop.roles import Reward, World
from strop.types import Group, Task
from strop.workers.foreign_checks import checked


@dataclass(frozen=True)
class Checked(Reward):
    """What the world a task comes from says about the last reply, from 0 to 1."""

    worlds: tuple[World, ...]
    weight: float = 1.0

    def open(self) -> None:
        """Make one task of each world, so that what it imports and reads is on no attempt's clock."""
        for world in self.worlds:
            world.task(0)

    def __call__(self, group: Group) -> list[float]:
        world = self._world(group.task)
        return [checked(world, attempt.task, attempt.reply) for attempt in group.trajectories]

    def _world(self, task: Task) -> World:
        """The world of the task's source, and of its level where several have that name."""
        named = [world for world in self.worlds if world.name == task.source]
        if not named:
            raise ConfigurationError(
                f"Checked knows no world {task.source!r}, only {', '.join(world.name for world in self.worlds)}"
            )
        return next((world for world in named if world.level == task.level), named[0])
