"""REINFORCE++'s advantage (Hu, 2501.03262): rewards standardised over the whole batch, no group needed.

Papers: reinforce-plus-plus
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.roles import Advantage
from strop.types import Group


@dataclass(frozen=True)
class BatchStandard(Advantage):
    """A = (r - mean) / (std + epsilon), mean and population std over all written tokens of the batch.

    The plain variant: no group baseline is taken first and no KL stands in the reward, so with discount 1 the
    return of every token is its rollout's reward, and a long rollout counts with all its tokens.
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
