"""Mixed groups of expert demonstrations and on-policy rollouts (RL-PLUS, CalibRL, DNO)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strop.concurrency import together
from strop.errors import ConfigurationError
from strop.roles import Agent, Player, Strategy
from strop.types import Group, Rollout, Start


@dataclass(frozen=True)
class Demonstrated(Strategy):
    """Strategy in which `expert` makes the last `count` rollouts of each group, the run's agent all others."""

    expert: Agent
    count: int = 1  # demonstrations in a group

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        own = len(starts) - self.count
        if own < 1:
            raise ConfigurationError(
                f"{self.count} of {len(starts)} rollouts are the expert's, need at least 1 more: set group_size"
            )
        agents = [None] * own + [self.expert] * self.count
        return await together(play(start, agent) for start, agent in zip(starts, agents, strict=True))
