"""Make every attempt on its own, all at once: plain sampling of a group."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from strop.roles import Player, Strategy
from strop.types import Start, Task, Trajectory


@dataclass(frozen=True)
class Independent(Strategy):
    """Siblings know nothing of each other."""

    async def __call__(self, task: Task, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        async with asyncio.TaskGroup() as attempts:
            playing = [attempts.create_task(_played(play, start)) for start in starts]
        return [attempt.result() for attempt in playing]


async def _played(play: Player, start: Start) -> Trajectory:
    """A coroutine, which a task needs and a player need not be."""
    return await play(start)
