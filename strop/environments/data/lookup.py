"""Which world a task is of: found by name and level, in this one place."""

from __future__ import annotations

from collections.abc import Sequence

from strop.errors import ConfigurationError
from strop.roles import World
from strop.types import Task

_TASKS = 1 << 20  # of an endless world


def world_of(worlds: Sequence[World], task: Task) -> World:
    """The world of the task's name and level; a world that is alone with its name may hold tasks of any level."""
    named = [world for world in worlds if world.name == task.source]
    fitting = [world for world in named if world.level == task.level] or named[: len(named) == 1]
    if fitting:
        return fitting[0]
    known = ", ".join(f"{world.name}:{world.level}" for world in worlds)
    raise ConfigurationError(f"task {task.id} is of {task.source}:{task.level}, and the worlds here are {known}")


def other_task(worlds: Sequence[World], task: Task) -> Task:
    """Another train task of the same world, always the same one for a task."""
    world = world_of(worlds, task)
    count = world.num_tasks() or _TASKS
    first = int.from_bytes(task.id.encode()[:8], "big") % count
    other = next((each for step in (0, 1) if (each := world.task((first + step) % count)).id != task.id), None)
    if other is None:
        raise ConfigurationError(f"{world.name}:{world.level} has no other task than {task.id} to show")
    return other
