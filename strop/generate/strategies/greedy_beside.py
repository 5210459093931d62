"""RLTF's baseline (2307.04349): beside the attempts one that takes the likeliest tokens, which is judged, not trained.

Papers: rltf
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from strop.errors import ConfigurationError
from strop.filter.feedback import FEEDBACK, GREEDY
from strop.generate.interfaces import Player
from strop.generate.policy import Policy
from strop.roles import Strategy
from strop.types import Group, Start, Trajectory


@dataclass
class GreedyBeside(Strategy):
    """Attempts of `inner`; each bears as fact `greedy` what the greedy one was told, unless the world failed that."""

    inner: Strategy
    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        if self._policy is None:
            raise ConfigurationError("GreedyBeside does not know how tokens are drawn: call meet(policy) first")
        likeliest = play.another(sampling=replace(self._policy.sampling, temperature=0.0))
        async with asyncio.TaskGroup() as tasks:
            alone = tasks.create_task(play(likeliest))
            made = tasks.create_task(self.inner(group, starts, play))
        await play.score([alone.result()])
        told = alone.result().facts.get(FEEDBACK)
        known = {} if told is None else {GREEDY: told}
        return [replace(attempt, facts=attempt.facts | known) for attempt in made.result()]
