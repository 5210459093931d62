"""Lookup of a task's environment by name and level."""

from __future__ import annotations

from collections.abc import Sequence

from strop.errors import ConfigurationError
from strop.roles import Environment
from strop.types import Task

_TASKS = 1 << 20  # of an endless environment


def env_of(envs: Sequence[Environment], task: Task) -> Environment:
    """The environment of the task's name and level; an environment that is alone with its name may hold tasks of any
    level.
    """
    named = [env for env in envs if env.name == task.source]
    fitting = [env for env in named if env.level == task.level] or named[: len(named) == 1]
    if fitting:
        return fitting[0]
    known = ", ".join(f"{env.name}:{env.level}" for env in envs)
    raise ConfigurationError(f"task {task.id} is of {task.source}:{task.level}, and the environments here are {known}")


def other_task(envs: Sequence[Environment], task: Task) -> Task:
    """Another train task of the same environment, always the same one for a task."""
    env = env_of(envs, task)
    count = env.num_tasks() or _TASKS
    first = int.from_bytes(task.id.encode()[:8], "big") % count
    other = next((each for step in (0, 1) if (each := env.task((first + step) % count)).id != task.id), None)
    if other is None:
        raise ConfigurationError(f"{env.name}:{env.level} has no other task than {task.id} to show")
    return other
