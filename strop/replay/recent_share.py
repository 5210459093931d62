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
from strop.roles import Buffer
from strop.types import Group


@dataclass
class RecentShare(Buffer):
    """A step's new groups, the oldest first, and on top old ones, so that the new are the share `fresh`.

    As few old ones as there are in the beginning. The length is that of the new groups alone, as a pace counts those.
    """

    fresh: float = 0.5  # share of new groups in a step
    capacity: int = 512  # old groups that are kept, the newest
    seed: int = 0  # of the choice of old ones

    _new: dict[int, Group] = field(default_factory=dict, init=False, repr=False, compare=False)
    _old: dict[int, Group] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 < self.fresh <= 1 or self.capacity < 0:
            raise ConfigurationError(
                f"RecentShare needs 0 < fresh <= 1 and capacity >= 0, got {self.fresh} and {self.capacity}"
            )

    def add(self, group: Group) -> None:
        if group.number in self._new or group.number in self._old:
            raise ValueError(f"group {group.number} is already in the buffer")
        self._new[group.number] = group

    def draw(self, count: int, step: int) -> list[Group] | None:
        if len(self._new) < count:
            return None
        wanted = min(round(count * (1 - self.fresh) / self.fresh), len(self._old))
        random = np.random.default_rng([self.seed, step])
        numbers = random.choice(sorted(self._old), wanted, replace=False).tolist() if wanted else []
        again = [self._old[number] for number in sorted(numbers)]
        new = [self._new.pop(number) for number in sorted(self._new)[:count]]
        for group in (*new, *again):
            group.times_trained += 1
        self._keep(new)
        return [*new, *again]

    def _keep(self, groups: list[Group]) -> None:
        newest = {
            group.task.id: group for group in sorted((*self._old.values(), *groups), key=lambda each: each.number)
        }
        kept = sorted(newest.values(), key=lambda group: group.number)[max(len(newest) - self.capacity, 0) :]
        self._old = {group.number: group for group in kept}

    def __len__(self) -> int:
        return len(self._new)

    def state(self) -> dict[str, Any]:
        held = {**self._old, **self._new}
        return {"times_trained": {str(number): held[number].times_trained for number in sorted(held)}}

    def restore(self, state: dict[str, Any], group_of: Callable[[int], Group]) -> None:
        self._new, self._old = {}, {}
        for number, times in state["times_trained"].items():
            group = group_of(int(number))
            group.times_trained = int(times)
            (self._old if group.times_trained else self._new)[group.number] = group
