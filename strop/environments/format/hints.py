"""Prompts with a hint: the first steps of the task's worked solution appended to the question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strop.capabilities import Hints
from strop.environments.data.lookup import env_of
from strop.errors import ConfigurationError
from strop.roles import Environment
from strop.types import Message, Task

_ALL = 1 << 16  # steps: more than any working has


def hinted(envs: Sequence[Environment], task: Task, steps: int) -> tuple[Message, ...]:
    """The task's messages, the last of them with a hint, in the words that the bundled model has seen."""
    return with_hint(task, _env(envs, task).hint(task, steps))


def with_hint(task: Task, hint: str) -> tuple[Message, ...]:
    """The task's messages, the last of them with these words as a hint."""
    *before, last = task.messages
    return (*before, replace(last, content=f"{last.content} hint: {hint}"))


def working(envs: Sequence[Environment], task: Task) -> str:
    """All steps of a task's working."""
    return _env(envs, task).hint(task, _ALL)


def beginnings(envs: Sequence[Environment], task: Task) -> list[str]:
    """The first step of a task's working, the first two, and so on to all of it."""
    env, found = _env(envs, task), list[str]()
    while (hint := env.hint(task, len(found) + 1)) and (not found or hint != found[-1]):
        found.append(hint)
    return found


def _env(envs: Sequence[Environment], task: Task) -> Hints:
    env = env_of(envs, task)
    if not isinstance(env, Hints):
        raise ConfigurationError(f"environment {env.name} gives no hints: it has no method hint(task, steps)")
    return env
