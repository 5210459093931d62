"""WebRL's replay (2411.02337): past successes that the policy is neither sure of nor surprised by, beside what is new.

Reading: how likely an attempt was is taken from when it was written; the release asks the newest policy again.
Papers: webrl
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from strop.errors import ConfigurationError
from strop.roles import Buffer
from strop.types import Group, Trajectory

_RIGHT = 0.5  # a reward above is a success
_KEPT = 1000  # old groups, those trained last


@dataclass
class ConfidentSuccesses(Buffer):
    """New groups once, the oldest first; on top at most `most` times as many old ones, trimmed to such successes.

    Kept are attempts with low < exp(mean log-probability) <= high: a perplexity of at least 1 / high and below 1 / low.
    """

    low: float = 0.5  # probability of a token, in the geometric mean
    high: float = 0.95
    most: float = 2.0  # old groups for each new one
    seed: int = 0  # of the choice of old ones

    _new: dict[int, Group] = field(default_factory=dict, init=False, repr=False, compare=False)
    _old: dict[int, Group] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= 1 or self.most < 0:
            raise ConfigurationError(
                f"ConfidentSuccesses needs 0 <= low < high <= 1 and most >= 0, got {self.low}, {self.high}, {self.most}"
            )

    def add(self, group: Group) -> None:
        if group.number in self._new or group.number in self._old:
            raise ValueError(f"group {group.number} is already in the buffer")
        self._new[group.number] = group

    def draw(self, count: int, step: int) -> list[Group] | None:
        if len(self._new) < count:
            return None
        fresh = [self._new.pop(number) for number in sorted(self._new)[:count]]
        known = sorted(self._old)
        chosen = np.random.default_rng([self.seed, step]).permutation(len(known))[: int(self.most * count)]
        again = [self._old[known[place]] for place in sorted(chosen.tolist())]
        for group in (*fresh, *again):
            group.times_trained += 1
        found = [*fresh, *(replace(group, trajectories=self._kept(group)) for group in again)]
        self._old |= {group.number: group for group in fresh if self._kept(group)}
        for number in sorted(self._old)[: max(len(self._old) - _KEPT, 0)]:
            del self._old[number]
        return found

    def _kept(self, group: Group) -> list[Trajectory]:
        return [attempt for attempt in group.own if attempt.reward > _RIGHT and self._is_between(attempt)]

    def _is_between(self, attempt: Trajectory) -> bool:
        logprobs = np.concatenate([*(turn.logprobs for turn in attempt.turns), np.zeros(0)])
        return len(logprobs) > 0 and self.low < math.exp(float(logprobs.mean())) <= self.high

    def __len__(self) -> int:
        return len(self._new)

    def state(self) -> dict[str, Any]:
        held = {**self._old, **self._new}
        return {"times_trained": {str(number): group.times_trained for number, group in sorted(held.items())}}

    def restore(self, state: dict[str, Any], group_of: Callable[[int], Group]) -> None:
        self._new, self._old = {}, {}
        for number, times in state["times_trained"].items():
            group = group_of(int(number))
            group.times_trained = int(times)
            (self._old if group.times_trained else self._new)[group.number] = group
