"""ETTRL's tree of attempts (2508.11356): whole attempts, and new endings from where each was least certain.

Reading: the token at a chosen position is drawn anew, and all after it; what stands before is given to the branch, and
so written once. Entropies are the trainer's, of the weights at hand, at the temperature of sampling.
Papers: ettrl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.concurrency import together
from strop.errors import ConfigurationError
from strop.generate.interfaces import Player
from strop.generate.tree_search.branch import branch_of, branched
from strop.roles import Strategy
from strop.training.requirements import ENTROPY
from strop.types import FloatArray, Group, Start, Trajectory


@dataclass(frozen=True)
class EntropyForks(Strategy):
    """Each start is a root; from its `positions` tokens of highest entropy `branches` attempts each go on otherwise.

    M starts make up to M * (1 + positions * branches) attempts. A branch has as its fact `shared` the share of its
    tokens that are its root's.
    """

    positions: int = 2  # of an attempt, from which others branch off
    branches: int = 2  # from each position

    def __post_init__(self) -> None:
        if self.positions < 1 or self.branches < 1:
            raise ConfigurationError(
                f"EntropyForks needs positions >= 1 and branches >= 1, got {self.positions} and {self.branches}"
            )

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        roots = await together(play(start) for start in starts)
        whole = [root for root in roots if root.is_scored and root.num_tokens]
        looks = await play.look(whole, frozenset({ENTROPY})) if whole else []
        places = [
            (root, at) for root, look in zip(whole, looks, strict=True) for at in self._places(look[ENTROPY.name])
        ]
        forks = [branch_of(root, at, play.another()) for root, at in places for _ in range(self.branches)]
        return [*roots, *await together(branched(start, play) for start in forks)]

    def _places(self, entropy: FloatArray) -> list[int]:
        """The most uncertain tokens, in their order; of equals the first."""
        highest: list[int] = np.argsort(-entropy, kind="stable")[: self.positions].tolist()
        return sorted(highest)
