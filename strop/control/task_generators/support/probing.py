"""Pass-rate probe of a candidate task: a few rollouts that are scored and never trained on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from strop.errors import ConfigurationError
from strop.types import Task

if TYPE_CHECKING:
    from strop.roles import Player


async def probed(task: Task, rollouts: int, play: Player) -> float | None:
    """Mean reward of so many rollouts; None: the environment failed them all, or its prompt leaves no room for a
    completion.
    """
    try:
        made = await asyncio.gather(*(play(play.another(), task=task) for _ in range(rollouts)))
    except ConfigurationError:
        return None
    scores = [score for score in await play.score(made) if score is not None]
    return sum(scores) / len(scores) if scores else None
