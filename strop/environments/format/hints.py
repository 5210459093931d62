"""Prompts with a hint: the first steps of the task's worked solution appended to the question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from strop.capabilities import Hints
from strop.environments.data.lookup import env_of
from strop.environments.format.demonstrations import Demonstration, Works
from strop.errors import ConfigurationError
from strop.roles import Environment
from strop.types import Message, Task

_ALL = 1 << 16  # steps: more than any worked solution has
_WORDS = re.compile(r"[^\W\d_]{2}")


def hinted(envs: Sequence[Environment], task: Task, steps: int) -> tuple[Message, ...]:
    """The task's messages, the last of them with the first steps of a hint."""
    return with_hint(task, _env(envs, task).hint(task, steps))


def with_hint(task: Task, hint: str) -> tuple[Message, ...]:
    """The task's messages, the last of them with these words as a hint: prose in a paragraph of its own, signs in the
    line that the bundled model has seen.
    """
    *before, last = task.messages
    layout = "{}\n\nHint: {}" if _WORDS.search(hint) else "{} hint: {}"
    return (*before, replace(last, content=layout.format(last.content, hint)))


def working(envs: Sequence[Environment], task: Task) -> str:
    """All steps of a task's worked solution."""
    worked = _worked(envs, task)
    return worked.hint(_ALL) if worked else _env(envs, task).hint(task, _ALL)


def beginnings(envs: Sequence[Environment], task: Task, opens: str = "") -> list[str]:
    """How a right completion begins: with its first step, its first two, and so on to all of them.

    `opens` stands before steps that an environment gives without its tags.
    """
    if worked := _worked(envs, task):
        return [worked.beginning(count + 1) for count in range(len(worked.pieces))]
    env, found = _env(envs, task), list[str]()
    while (hint := env.hint(task, len(found) + 1)) and (not found or hint != found[-1]):
        found.append(hint)
    return [opens + hint for hint in found]


def _worked(envs: Sequence[Environment], task: Task) -> Demonstration | None:
    env = env_of(envs, task)
    return env.demonstration(task) if isinstance(env, Works) else None


def _env(envs: Sequence[Environment], task: Task) -> Hints:
    env = env_of(envs, task)
    if not isinstance(env, Hints):
        raise ConfigurationError(f"environment {env.name} gives no hints: it has no method hint(task, steps)")
    return env
