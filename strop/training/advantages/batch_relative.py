"""Advantages standardized over the training batch, with or without a value baseline.

Papers: reinforce-plus-plus
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.roles import Advantage
from strop.types import Group

# REINFORCE++-baseline (Hu, 2501.03262): subtract the group's mean, then standardise over the whole batch.


@dataclass(frozen=True)
class BaselineStandard(Advantage):
    """a = r - mean of the group; A = (a - mean) / (std + epsilon) over all completion tokens of the batch, population
    std.

    No group is divided by its own std, and a long rollout counts with all its tokens.
    """

    epsilon: float = 1e-8

    min_group: ClassVar[int] = 2

    def __call__(self, groups: Sequence[Group]) -> None:
        rollouts = [rollout for group in groups for rollout in group.scored]
        lengths = np.array([rollout.num_tokens for rollout in rollouts], dtype=np.float64)
        centred = np.concatenate([*(_centred(group) for group in groups), np.zeros(0)])
        count = max(lengths.sum(), 1.0)
        centred -= (lengths * centred).sum() / count
        spread = np.sqrt((lengths * centred**2).sum() / count)
        for rollout, value in zip(rollouts, centred, strict=True):
            rollout.set_advantage(float(value / (spread + self.epsilon)))


def _centred(group: Group) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Rewards minus their mean, exactly 0 where all are equal: [G]."""
    rewards = np.array([rollout.reward for rollout in group.scored], dtype=np.float64)
    rewards -= rewards[:1].copy()
    return rewards - rewards.mean() if len(rewards) else rewards


# REINFORCE++'s advantage (Hu, 2501.03262): rewards standardised over the whole batch, no group needed.


@dataclass(frozen=True)
class BatchStandard(Advantage):
    """A = (r - mean) / (std + epsilon), mean and population std over all completion tokens of the batch.

    The plain variant: no group baseline and no KL in the reward, so with discount 1 the return of every token is its
    rollout's reward, and a long rollout counts with all its tokens.
    """

    epsilon: float = 1e-8  # keeps the divisor above 0

    def __call__(self, groups: Sequence[Group]) -> None:
        rollouts = [rollout for group in groups for rollout in group.scored]
        lengths = np.array([rollout.num_tokens for rollout in rollouts])
        num_tokens = max(int(lengths.sum()), 1)
        rewards = np.array([rollout.reward for rollout in rollouts], dtype=np.float64)
        rewards -= rewards[:1]  # equal rewards give exactly 0, not a rounding error over epsilon
        centred = rewards - (lengths * rewards).sum() / num_tokens
        spread = np.sqrt((lengths * centred**2).sum() / num_tokens)
        for rollout, difference in zip(rollouts, centred, strict=True):
            rollout.set_advantage(float(difference / (spread + self.epsilon)))
