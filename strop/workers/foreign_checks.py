"""A check that is not ours never runs in the run's own process, where it could hang it, read it or change it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strop.errors import ConfigurationError
from strop.workers.limits import is_confined

if TYPE_CHECKING:
    from strop.roles import World
    from strop.types import Task


def checked(world: World, task: Task, reply: str) -> float:
    """What a world says about a final reply, asked where it may be asked."""
    _require(world)
    return world.check(task, reply)


def answered(world: World, reply: str) -> str:
    """The answer that a world finds in a final reply, asked where it may be asked."""
    _require(world)
    return world.answer(reply)


def _require(world: World) -> None:
    if not world.is_inline and not is_confined():
        raise ConfigurationError(
            f"the check of world {world.name} is not ours and runs only in a reward's process: reward its tasks with "
            "Checked(worlds=(...)), or set `is_inline = True` in the world's class if its check is pure and quick"
        )
