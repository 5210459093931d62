"""ReLIFT's demonstrations (2506.07527): where a whole wave failed, the next one is an expert's.

Papers: relift
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strop.concurrency import together
from strop.generate.interfaces import Player
from strop.roles import Agent, Strategy
from strop.types import Group, Start, Trajectory

FAMILY = "shown"


@dataclass(frozen=True)
class ShownWhenLost(Strategy):
    """The first wave is the policy's own; every later one is played by `expert`, and is a family of its own."""

    expert: Agent

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        if not group.trajectories:
            return await together(play(start) for start in starts)
        return await together(play(replace(start, family=FAMILY), self.expert) for start in starts)
