"""How well the policy does at a task that is not in the run yet: a few attempts that count and are never trained on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from strop.errors import ConfigurationError
from strop.types import Task

if TYPE_CHECKING:
    from strop.generate.interfaces import Player


async def probed(task: Task, attempts: int, play: Player) -> float | None:
    """Mean reward of so many attempts; None: the world failed them all, or its prompt leaves no room for a reply."""
    try:
        made = await asyncio.gather(*(play(play.another(), task=task) for _ in range(attempts)))
    except ConfigurationError:
        return None
    marks = [mark for mark in await play.score(made) if mark is not None]
    return sum(marks) / len(marks) if marks else None
