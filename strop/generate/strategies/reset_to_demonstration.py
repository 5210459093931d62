"""DR-PO's resets (2404.08495): attempts begin in a state that a demonstration went through, chosen at random.

What is given is a state and no action: read, never trained, credited or counted. The demonstration stands for the
preferred reply of a data set.
Papers: dr-po
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.concurrency import together
from strop.errors import ConfigurationError
from strop.generate.interfaces import Player
from strop.generate.tree_search.branch import branch_of, branched
from strop.roles import Agent, Strategy
from strop.types import Group, Start, Trajectory


@dataclass(frozen=True)
class ResetToDemonstration(Strategy):
    """With probability `share` an attempt is given the first k of the L tokens of what `expert` does, 0 < k < L.

    The demonstration itself is not brought. Where it has fewer than 2 tokens or the world fails it, nothing is reset.
    """

    expert: Agent
    share: float = 1.0  # of attempts that are reset

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ConfigurationError(f"ResetToDemonstration needs 0 <= share <= 1, got {self.share}")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        chances = [np.random.default_rng(start.key) for start in starts]
        is_reset = [chance.random() < self.share for chance in chances]
        if not any(is_reset):
            return await together(play(start) for start in starts)
        shown = await play(play.another(), self.expert)
        if not shown.is_scored or shown.num_tokens < 2:
            return await together(play(start) for start in starts)
        cuts = [int(chance.integers(1, shown.num_tokens)) for chance in chances]
        chosen = [
            branch_of(shown, at, start) if reset else start
            for start, at, reset in zip(starts, cuts, is_reset, strict=True)
        ]
        return await together(branched(start, play) for start in chosen)
