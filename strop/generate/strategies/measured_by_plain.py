"""Hawkeye's yardstick (2504.00424): how long the model's own full chain of thought for the same question is.

Reading: that of the model training began with, sampled once for each group; it is not brought, and its length stands
beside every attempt as a fact.
Papers: hawkeye
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strop.generate.interfaces import Player
from strop.generate.policy_names import REFERENCE
from strop.roles import Agent, Strategy
from strop.success import PLAIN
from strop.types import Group, Start, Trajectory


@dataclass(frozen=True)
class MeasuredByPlain(Strategy):
    """What `inner` makes, with the length of what `plain` makes in the reference's voice; needs `WithReference`."""

    inner: Strategy
    plain: Agent

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        made = await self.inner(group, starts, play)
        known = [attempt.facts[PLAIN] for attempt in group.trajectories if PLAIN in attempt.facts]
        size = known[0] if known else (await play(play.another(voice=REFERENCE), self.plain)).num_tokens
        for attempt in made:
            attempt.facts[PLAIN] = float(size)
        return made
