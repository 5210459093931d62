"""Mobile-R1's stages (2506.20332): single actions behind an expert's beginning first, whole attempts later.

Papers: mobile-r1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.concurrency import together
from strop.errors import ConfigurationError
from strop.generate.interfaces import Player
from strop.generate.tree_search.branch import branch_of
from strop.roles import Agent, Strategy
from strop.types import Group, Start, Trajectory


@dataclass(frozen=True)
class ActionsFirst(Strategy):
    """Before version `until` all attempts of a group take one action after the same turns of what `expert` does.

    How many turns, from none to all but the last, the group's first key says. They are read and never trained, and the
    demonstration itself is not brought; where the world fails it, the group's attempts are whole ones.
    """

    expert: Agent
    actor: Agent  # who takes one action
    until: int = 20  # versions of the action stage

    def __post_init__(self) -> None:
        if self.until < 0:
            raise ConfigurationError(f"ActionsFirst needs until >= 0 versions, got {self.until}")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        if group.version >= self.until:
            return await together(play(start) for start in starts)
        shown = await play(play.another(), self.expert)
        if not shown.is_scored or not shown.turns:
            return await together(play(start) for start in starts)
        before = int(np.random.default_rng(starts[0].key).integers(len(shown.turns)))
        at = sum(len(turn.tokens) for turn in shown.turns[:before])
        chosen = [branch_of(shown, at, start) if at else start for start in starts]
        return await together(play(start, self.actor) for start in chosen)
