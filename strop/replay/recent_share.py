"""DOTS's replay (2506.05316): a fixed share of every step is groups that were trained on lately.

Drawn uniformly among the newest, with the logprobs they were sampled with, so that ratios are to the policy of that
time. Of a task that came back only the newest group is kept.
Papers: dots-rr
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from strop.errors import ConfigurationError
from strop.replay.memory.held import Held
from strop.roles import Buffer
from strop.types import Group


@dataclass
class RecentShare(Buffer):
    """A step's new groups, the oldest first, and on top old ones, so that the new are the share `fresh`.

    As few old ones as there are in the beginning.
    """

    fresh: float = 0.5  # share of new groups in a step
    capacity: int = 512  # old groups that are kept, the newest
    seed: int = 0  # of the choice of old ones

    _held: Held = field(default_factory=Held, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 < self.fresh <= 1 or self.capacity < 0:
            raise ConfigurationError(
                f"RecentShare needs 0 < fresh <= 1 and capacity >= 0, got {self.fresh} and {self.capacity}"
            )

    def add(self, group: Group) -> None:
        self._held.add(group)

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

    def __len__(self) -> int:
        return len(self._held)

    def state(self) -> dict[str, Any]:
        return self._held.state()

    def restore(self, state: dict[str, Any], group_of: Callable[[int], Group]) -> None:
        self._held.restore(state, group_of)
