"""A group with an expert in it: some attempts are another agent's, beside the policy's own (RL-PLUS, CalibRL, DNO)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from strop.errors import ConfigurationError
from strop.roles import Agent, Player, Strategy
from strop.types import Start, Task, Trajectory


@dataclass(frozen=True)
class Demonstrated(Strategy):
    """The last `count` attempts of each group are played by `expert`; all others by the run's own agent."""

    expert: Agent
    count: int = 1  # demonstrations in a group

    async def __call__(self, task: Task, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        own = len(starts) - self.count
        if own < 1:
            raise ConfigurationError(
                f"{self.count} of {len(starts)} attempts are the expert's, need at least 1 more (set group_size)"
            )
        async with asyncio.TaskGroup() as attempts:
            agents = [None] * own + [self.expert] * self.count
            playing = [attempts.create_task(_played(play, *each)) for each in zip(starts, agents, strict=True)]
        return [attempt.result() for attempt in playing]


async def _played(play: Player, start: Start, agent: Agent | None) -> Trajectory:
    """A coroutine, which a task needs and a player need not be."""
    return await play(start, agent)
