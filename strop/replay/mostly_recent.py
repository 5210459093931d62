"""TBA's replay buffer (2503.18929): mostly new groups, and a share of all earlier ones.

A loss that is valid for any policy's rollouts (trajectory balance) may learn from both. Infinite environments give
every task once, so a task's answers are its group: new groups are sampled whole, and some answers of old ones.
Papers: tba
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from strop.errors import ConfigurationError
from strop.replay.memory.held_groups import Replaying
from strop.types import Group


@dataclass
class MostlyRecent(Replaying):
    """A step's new groups, the oldest first, and in addition so many trained on before that the new are a share
    `recent`.

    Old groups in place of new ones would make the new wait beyond the lag. They are sampled uniformly, and none again
    before all others were. The choice depends on seed and step only. Of an old group `answers` rollouts are sampled
    without replacement, with probabilities softmax(sharpness * reward) over those left; 0: all of them.
    """

    recent: float = 0.95  # share of new groups in a step
    capacity: int = 1000  # old groups that are kept, the newest
    seed: int = 0  # of the choice of old ones
    answers: int = 0  # of an old group that are drawn; 0: all
    sharpness: float = 0.0  # 1 / temperature of TBA's softmax over rewards; 0: uniform

    _turn: list[int] = field(default_factory=list, init=False, repr=False, compare=False)  # old, not yet taken again

    def __post_init__(self) -> None:
        if not 0 < self.recent <= 1 or self.capacity < 0:
            raise ConfigurationError(
                f"MostlyRecent needs 0 < recent <= 1 and capacity >= 0, got {self.recent} and {self.capacity}"
            )
        if self.answers < 0 or self.answers == 1 or self.sharpness < 0:
            raise ConfigurationError(
                f"MostlyRecent needs answers >= 2 or 0 for all, and sharpness >= 0, got {self.answers} and "
                f"{self.sharpness}"
            )

    def sample(self, count: int, step: int) -> list[Group] | None:
        if len(self._held) < count:
            return None
        random = np.random.default_rng([self.seed, step])
        # how many places fell to old groups before each of the new ones
        num_old = int(random.geometric(self.recent, count).sum()) - count
        again = self._take_old(min(num_old, len(self._held.old)), random)
        fresh = self._held.take(count, again)
        self._held.forget(self.capacity)
        return [*fresh, *(self._some_of(group, random) for group in again)]

    def state(self) -> dict[str, Any]:
        return super().state() | {"turn": list(self._turn)}

    def restore(self, state: dict[str, Any], group_of: Callable[[int], Group]) -> None:
        super().restore(state, group_of)
        self._turn = [int(number) for number in state["turn"]]

    def _take_old(self, count: int, random: np.random.Generator) -> list[Group]:
        """Different ones; whoever was not taken since the last time all were goes first."""
        taken: list[Group] = []
        old = self._held.old
        self._turn = [number for number in self._turn if number in old]
        while len(taken) < count:
            free = [number for number in self._turn if old[number] not in taken]
            if free:
                number = free[int(random.integers(len(free)))]
                self._turn.remove(number)
                taken.append(old[number])
            else:
                self._turn += sorted(old)
        return taken

    def _some_of(self, group: Group, random: np.random.Generator) -> Group:
        """The largest of rewards with Gumbel noise are draws from the softmax without replacement (Gumbel top-k)."""
        rollouts = group.scored
        if not 0 < self.answers < len(rollouts):
            return group
        noisy = self.sharpness * group.rewards + random.gumbel(size=len(rollouts))
        chosen = sorted(np.argsort(-noisy)[: self.answers].tolist())
        return replace(group, rollouts=[rollouts[index] for index in chosen])
