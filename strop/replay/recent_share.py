"""DOTS's replay (2506.05316): a fixed share of every step is groups that were trained on lately.

Drawn uniformly among the newest, with the logprobs they were sampled with, so that ratios are to the policy of that
time. Of a task that came back only the newest group is kept.
Papers: dots-rr
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strop.errors import ConfigurationError
from strop.replay.memory.held_groups import Replaying
from strop.types import Group


@dataclass
class RecentShare(Replaying):
    """A step's new groups, the oldest first, and on top old ones, so that the new are the share `fresh`.

    As few old ones as there are in the beginning.
    """

    fresh: float = 0.5  # share of new groups in a step
    capacity: int = 512  # old groups that are kept, the newest
    seed: int = 0  # of the choice of old ones

    def __post_init__(self) -> None:
        if not 0 < self.fresh <= 1 or self.capacity < 0:
            raise ConfigurationError(
                f"RecentShare needs 0 < fresh <= 1 and capacity >= 0, got {self.fresh} and {self.capacity}"
            )

    def draw(self, count: int, step: int) -> list[Group] | None:
        old = self._held.old
        if len(self._held) < count:
            return None
        wanted = min(round(count * (1 - self.fresh) / self.fresh), len(old))
        random = np.random.default_rng([self.seed, step])
        numbers = random.choice(sorted(old), wanted, replace=False).tolist() if wanted else []
        again = [old[number] for number in sorted(numbers)]
        new = self._held.take(count, again)
        self._forget()
        return [*new, *again]

    def _forget(self) -> None:
        old = self._held.old
        newest = {old[number].task.id: number for number in sorted(old)}
        self._held.old = {number: old[number] for number in newest.values()}
        self._held.forget(self.capacity)
