"""Independent sampling of all rollouts of a group, concurrently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strop.concurrency import together
from strop.roles import Player, Strategy
from strop.types import Group, Rollout, Start


@dataclass(frozen=True)
class Independent(Strategy):
    """Strategy without any interaction between siblings."""

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        return await together(play(start) for start in starts)
