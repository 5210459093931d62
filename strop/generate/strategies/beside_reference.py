"""AAPO's attempts (2505.14264): for each of the policy's one by the model it began as, at the same task.

Papers: aapo
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from strop.errors import ConfigurationError
from strop.generate.marked_keys import marked
from strop.roles import Player, Strategy
from strop.types import Origin, Start, Task, Trajectory


@dataclass(frozen=True)
class BesideReference(Strategy):
    """The first half of the starts is the policy's, the second the reference's; needs the engine `WithReference`."""

    async def __call__(self, task: Task, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        half = len(starts) // 2
        if len(starts) != 2 * half or not half:
            raise ConfigurationError(
                f"BesideReference pairs attempts: need an even number per group, got {len(starts)}"
            )
        theirs = [replace(each, key=marked(each.key, 0, 1), origin=Origin.TEACHER) for each in starts[half:]]

        async def played(start: Start) -> Trajectory:
            return await play(start)

        async with asyncio.TaskGroup() as attempts:
            playing = [attempts.create_task(played(start)) for start in (*starts[:half], *theirs)]
        return [attempt.result() for attempt in playing]
