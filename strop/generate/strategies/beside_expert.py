"""StepAgent's inspection (2411.03817): behind an expert's own past, what he did next and what the policy would do.

Papers: stepagent
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from strop.concurrency import together
from strop.errors import ConfigurationError
from strop.generate.interfaces import Player
from strop.generate.tree_search.branch import branch_of
from strop.roles import Agent, Strategy
from strop.types import Group, Origin, Start, Trajectory


@dataclass(frozen=True)
class BesideExpert(Strategy):
    """The first attempt of a group is `shower`'s, the others are `actor`'s, all after the same turns of `expert`.

    How many turns, from none to all but the last, the group's first key says; they are read and never trained. Where
    the world fails the expert, nothing is brought.
    """

    expert: Agent
    shower: Agent
    actor: Agent

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        if len(starts) < 2:
            raise ConfigurationError(f"BesideExpert needs group_size >= 2, one for the expert, got {len(starts)}")
        whole = await play(play.another(), self.expert)
        if not whole.is_scored or not whole.turns:
            return []
        before = int(np.random.default_rng(starts[0].key).integers(len(whole.turns)))
        at = sum(len(turn.tokens) for turn in whole.turns[:before])
        chosen = [branch_of(whole, at, start) if at else start for start in starts]
        chosen[0] = replace(chosen[0], origin=Origin.TEACHER)  # a branch, too, holds his tokens
        agents = [self.shower] + [self.actor] * (len(starts) - 1)
        return await together(play(start, agent) for start, agent in zip(chosen, agents, strict=True))
