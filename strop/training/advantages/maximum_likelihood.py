"""MaxRL's advantage (2602.02710): divided by the success rate, which makes the log of it the objective.

Papers: maxrl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.types import Group


@dataclass(frozen=True)
class MaximumLikelihood(Advantage):
    """A = (r - mean) / mean in the group, 0 where nothing succeeded; rewards must not be negative.

    The expected gradient is that of the first G - 1 terms of log p = -sum_k (1 - p)^k / k, p the success rate.
    """

    min_group: ClassVar[int] = 2

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            rewards = np.array([rollout.reward for rollout in group.scored], dtype=np.float64)
            if (rewards < 0).any():
                raise ConfigurationError(
                    f"MaximumLikelihood divides by the mean reward and needs rewards >= 0, got {rewards.min():g} "
                    f"for task {group.task.id}"
                )
            mean = float(rewards.mean()) if len(rewards) else 0.0
            for rollout, reward in zip(group.scored, rewards, strict=True):
                rollout.set_advantage(float((reward - mean) / mean) if mean > 0 else 0.0)
