"""RECAP's two sources (2510.21978): tasks of some worlds are practised, of others worked answers are replayed.

A replayed answer is the world's own, REPLAYED: nobody sampled it (version -1), it is trained beside the policy's own
attempts in the same optimizer step, and no pass rate counts it.
Papers: recap
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strop.errors import ConfigurationError
from strop.generate.interfaces import Player
from strop.roles import Agent, Strategy
from strop.types import Group, Origin, Start, Trajectory


@dataclass(frozen=True)
class BySource(Strategy):
    """`expert` gives one answer to each task of a world that `replayed` names; `inner` does all others."""

    inner: Strategy
    expert: Agent
    replayed: tuple[str, ...]  # worlds, as name:level

    def __post_init__(self) -> None:
        if not self.replayed:
            raise ConfigurationError("BySource needs at least 1 world to replay, as name:level, got 0")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        if f"{group.task.source}:{group.task.level}" not in self.replayed:
            return await self.inner(group, starts, play)
        if group.trajectories:
            return []  # one is enough, however many waves a budget allows
        answer = await play(starts[0], self.expert)
        answer.origin = Origin.REPLAYED
        return [answer]
