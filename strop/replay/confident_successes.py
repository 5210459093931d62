"""WebRL's replay (2411.02337): past successes that the policy is neither sure of nor surprised by, beside what is new.

Reading: how likely an attempt was is taken from when it was written; the release asks the newest policy again.
Papers: webrl
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from strop.errors import ConfigurationError
from strop.replay.memory.held_groups import Replaying
from strop.types import Group, Trajectory

_RIGHT = 0.5  # a reward above is a success
_KEPT = 1000  # old groups, those trained last


@dataclass
class ConfidentSuccesses(Replaying):
    """New groups once, the oldest first; on top at most `most` times as many old ones, trimmed to such successes.

    Kept are attempts with low < exp(mean log-probability) <= high: a perplexity of at least 1 / high and below 1 / low.
    """

    low: float = 0.5  # probability of a token, in the geometric mean
    high: float = 0.95
    most: float = 2.0  # old groups for each new one
    seed: int = 0  # of the choice of old ones

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= 1 or self.most < 0:
            raise ConfigurationError(
                f"ConfidentSuccesses needs 0 <= low < high <= 1 and most >= 0, got {self.low}, {self.high}, {self.most}"
            )

    def draw(self, count: int, step: int) -> list[Group] | None:
        held = self._held
        if len(held) < count:
            return None
        known = sorted(held.old)
        chosen = np.random.default_rng([self.seed, step]).permutation(len(known))[: int(self.most * count)]
        again = [held.old[known[place]] for place in sorted(chosen.tolist())]
        fresh = held.take(count, again)
        for group in fresh:
            if not self._kept(group):
                del held.old[group.number]
        held.forget(_KEPT)
        return [*fresh, *(replace(group, trajectories=self._kept(group)) for group in again)]

    def _kept(self, group: Group) -> list[Trajectory]:
        return [attempt for attempt in group.own if attempt.reward > _RIGHT and self._is_between(attempt)]

    def _is_between(self, attempt: Trajectory) -> bool:
        logprobs = np.concatenate([*(turn.logprobs for turn in attempt.turns), np.zeros(0)])
        return len(logprobs) > 0 and self.low < math.exp(float(logprobs.mean())) <= self.high
