"""A threshold on closeness that is left to probability, task by task: a negative control of one that tightens."""

from __future__ import annotations

import random
from dataclasses import dataclass

from strop.filter.reward_values import plain_scores
from strop.roles import Reward
from strop.types import Group


@dataclass(frozen=True)
class AnyThreshold(Reward):
    """What `inner` says where it reaches the task's threshold, else 0; thresholds are uniform from 0 to 1."""

    inner: Reward  # scores from 0 to 1
    weight: float = 1.0

    @property
    def is_inline(self) -> bool:
        return self.inner.is_inline

    def __call__(self, group: Group) -> list[float]:
        least = random.Random(f"threshold/{group.task.id}").random()
        return [score if score >= least else 0.0 for score in plain_scores(self, self.inner, group)]
