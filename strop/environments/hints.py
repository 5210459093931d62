"""A task as it reads with a hint: the first steps of its working behind the question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strop.abilities import Hints
from strop.environments.of_task import world_of
from strop.errors import ConfigurationError
from strop.roles import World
from strop.types import Message, Task


def hinted(worlds: Sequence[World], task: Task, steps: int) -> tuple[Message, ...]:
    """The task's messages, the last of them with a hint, in the words that the bundled model has seen."""
    world = world_of(worlds, task)
    if not isinstance(world, Hints):
        raise ConfigurationError(without_hints([world])[0])
    *before, last = task.messages
    return (*before, replace(last, content=f"{last.content} hint: {world.hint(task, steps)}"))


def without_hints(worlds: Sequence[World]) -> list[str]:
    """What is wrong with worlds that give none."""
    return [
        f"world {world.name} gives no hints: it has no method hint(task, steps)"
        for world in worlds
        if not isinstance(world, Hints)
    ]
