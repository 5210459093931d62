"""Pass-rate probe of a candidate task: a few rollouts that are scored and never trained on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from strop.errors import ConfigurationError
from strop.types import Task

if TYPE_CHECKING:
    from strop.roles import Player


async def probed(task: Task, rollouts: int, play: Player) -> float | None:
    """Mean success of so many rollouts; None: nobody knows it, or the prompt leaves no room for a completion."""
    try:
        made = await asyncio.gather(*(play(play.another(), task=task) for _ in range(rollouts)))
    except ConfigurationError:
        return None
    known = [each.success for each in await play.score(made) if each is not None and each.success is not None]
    return sum(known) / len(known) if known else None
