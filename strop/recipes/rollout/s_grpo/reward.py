"""Decaying reward of S-GRPO (2505.07686): the earliest right exit of a serial group earns 1, each later one half.

Reading: the exponent counts right answers and not exits; the whole thought comes last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.filter.reward_values import RewardScores, shaped
from strop.filter.rewards.around import AroundReward
from strop.success import is_right
from strop.types import Group, Rollout

EXIT = "exit"  # fact: number of reasoning tokens before an answer was forced


@dataclass(frozen=True)
class Decaying(AroundReward):
    """Reward `inner` times 1 / 2^k, after k right answers at earlier exits."""

    needs_success: ClassVar[bool] = True

    def __call__(self, group: Group) -> RewardScores:
        return shaped(self, group, lambda paid: _halved(group.rollouts, paid), self.inner)


def _halved(rollouts: Sequence[Rollout], paid: Sequence[float]) -> list[float]:
    """Rewards of right rollouts, in the order of their exits; 0 for all others."""
    order = sorted(range(len(rollouts)), key=lambda place: rollouts[place].facts.get(EXIT, math.inf))
    scores, right = [0.0] * len(rollouts), 0
    for place in order:
        if rollouts[place].is_scored and is_right(rollouts[place]):
            scores[place] = paid[place] / 2**right
            right += 1
    return scores
