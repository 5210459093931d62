"""Execution of a user's check functions in a process apart from the run, which they could hang, read or change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strop.errors import ConfigurationError
from strop.workers.limits import is_confined

if TYPE_CHECKING:
    from strop.roles import Environment
    from strop.types import Task


def checked(env: Environment, task: Task, completion: str) -> float:
    """What an environment says about a final completion, asked where it may be asked."""
    _require(env)
    return env.check(task, completion)


def answered(env: Environment, completion: str) -> str:
    """The answer that an environment finds in a final completion, asked where it may be asked."""
    _require(env)
    return env.answer(completion)


def _require(env: Environment) -> None:
    if not env.is_inline and not is_confined():
        raise ConfigurationError(
            f"the check of environment {env.name} is not ours and runs only in a reward's process: reward its tasks "
            f"with "
            "Checked(envs=(...)), or set `is_inline = True` in the environment's class if its check is pure and fast"
        )
