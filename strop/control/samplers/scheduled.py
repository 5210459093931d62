"""RAG-RL's curricula (2503.12759): which level comes when is fixed before the run, and so is its shuffled control.

Reading: the schedule counts draws, as the paper's counts samples; groups that gates drop have had theirs. A schedule
that is over goes on as it ended, a shuffled one begins again.
Papers: rag-rl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from strop.control.samplers.support.bandit_arms import Shelves
from strop.control.samplers.support.env_shares import shares
from strop.errors import ConfigurationError
from strop.roles import Belief, Sampler, World
from strop.types import Group, Metrics, Task

Shape: TypeAlias = Literal["max", "linear", "min-max"]


@dataclass
class Scheduled(Sampler):
    """Draw i of n is of level ceil(K i / n) (linear), of 1 and from the middle on K (min-max), or always of K (max).

    `is_shuffled` is the control: the same levels equally often, in an order left to chance.
    """

    worlds: tuple[World, ...]  # K levels, from easy to hard
    draws: int  # n
    shape: Shape = "min-max"
    is_shuffled: bool = False
    seed: int = 0  # of the shuffled order
    _shelves: Shelves = field(init=False, repr=False, compare=False)
    _order: list[int] = field(default_factory=list, init=False, repr=False, compare=False)
    _num_drawn: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._shelves = Shelves(self.worlds)
        if self.draws < 1 or self.shape not in ("max", "linear", "min-max"):
            raise ConfigurationError(
                f"Scheduled needs draws >= 1 and a shape of max, linear or min-max, got {self.draws} and {self.shape!r}"
            )
        if self.is_shuffled:
            self._order = [int(place) for place in np.random.default_rng(self.seed).permutation(self.draws)]

    def arm(self, draw: int) -> int:
        """The level of a draw, both from 0 on."""
        place = self._order[draw % self.draws] if self.is_shuffled else min(draw, self.draws - 1)
        hardest = len(self.worlds) - 1
        if self.shape == "linear":
            return -(-len(self.worlds) * (place + 1) // self.draws) - 1
        return 0 if self.shape == "min-max" and 2 * place < self.draws else hardest

    def next(self, step: int, belief: Belief) -> Task:
        self._num_drawn += 1
        return self._shelves.take(self.arm(self._num_drawn - 1))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says which levels the draw is of."""
        return shares(self.worlds, groups)

    def state(self) -> dict[str, Any]:
        return {"num_drawn": self._num_drawn, "shelves": self._shelves.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._num_drawn = int(state["num_drawn"])
        self._shelves.restore(state["shelves"])
