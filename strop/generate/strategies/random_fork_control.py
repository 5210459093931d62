"""Random branching: negative control of strategies that branch at uncertain tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.concurrency import together
from strop.errors import ConfigurationError
from strop.generate.tree_search.branch import branch_of, branched
from strop.roles import Player, Strategy
from strop.types import Group, Rollout, Start


@dataclass(frozen=True)
class RandomForks(Strategy):
    """Tree whose roots are the starts; at `positions` uniformly chosen tokens of a root, `branches` rollouts branch
    off.
    """

    positions: int = 2  # of a rollout, where others branch off
    branches: int = 2  # from each position

    def __post_init__(self) -> None:
        if self.positions < 1 or self.branches < 1:
            raise ConfigurationError(
                f"RandomForks needs positions >= 1 and branches >= 1, got {self.positions} and {self.branches}"
            )

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        roots = await together(play(start) for start in starts)
        forks = [
            branch_of(root, at, play.another())
            for root, start in zip(roots, starts, strict=True)
            if root.is_scored
            for at in self._places(root.num_tokens, start.key)
            for _ in range(self.branches)
        ]
        return [*roots, *await together(branched(start, play) for start in forks)]

    def _places(self, size: int, key: int) -> list[int]:
        count = min(self.positions, size)
        return sorted(np.random.default_rng(key).choice(size, count, replace=False).tolist()) if count else []
