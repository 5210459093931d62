"""A task as it reads with a hint: the first steps of its working behind the question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strop.capabilities import Hints
from strop.environments.data.lookup import world_of
from strop.errors import ConfigurationError
from strop.roles import World
from strop.types import Message, Task

_ALL = 1 << 16  # steps: more than any working has


def hinted(worlds: Sequence[World], task: Task, steps: int) -> tuple[Message, ...]:
    """The task's messages, the last of them with a hint, in the words that the bundled model has seen."""
    return with_hint(task, _world(worlds, task).hint(task, steps))


def with_hint(task: Task, hint: str) -> tuple[Message, ...]:
    """The task's messages, the last of them with these words as a hint."""
    *before, last = task.messages
    return (*before, replace(last, content=f"{last.content} hint: {hint}"))


def working(worlds: Sequence[World], task: Task) -> str:
    """All steps of a task's working."""
    return _world(worlds, task).hint(task, _ALL)


def beginnings(worlds: Sequence[World], task: Task) -> list[str]:
    """The first step of a task's working, the first two, and so on to all of it."""
    world, found = _world(worlds, task), list[str]()
    while (hint := world.hint(task, len(found) + 1)) and (not found or hint != found[-1]):
        found.append(hint)
    return found


def _world(worlds: Sequence[World], task: Task) -> Hints:
    world = world_of(worlds, task)
    if not isinstance(world, Hints):
        raise ConfigurationError(without_hints([world])[0])
    return world


def without_hints(worlds: Sequence[World]) -> list[str]:
    """What is wrong with worlds that give none."""
    return [
        f"world {world.name} gives no hints: it has no method hint(task, steps)"
        for world in worlds
        if not isinstance(world, Hints)
    ]
