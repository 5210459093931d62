"""Lite PPO: the group's mean, the batch's spread, the token mean, PPO's clip, and nothing else.

Title: Part I: Tricks or Traps? A Deep Dive into RL for LLM Reasoning
Paper: arXiv 2508.08221 (2025)
Claim: These two techniques on plain PPO steps are better than GRPO and DAPO.
Reading: The spread is that of the raw rewards. `high` up to 0.32 is one of the switches the paper isolates.
Acts: advantage > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.recipes.setting import Setting
from strop.roles import Advantage
from strop.run import Run
from strop.training.losses.clip import Clip
from strop.training.reductions.means import TokenMean
from strop.types import Group

# Lite PPO's advantage (Liu et al., 2508.08221): the mean of the group, the spread of the whole batch.
#
# Reading: the spread is that of the raw rewards, as the paper says, and not of the centred ones. The other half of Lite
# PPO is the reduction `TokenMean`.


@dataclass(frozen=True)
class SharedSpread(Advantage):
    """A = (r - mean of the group) / (std of the batch + epsilon), the std divided by n - 1.

    Differences between tasks keep the divisor away from 0 where single groups are uniform; no group is blown up.
    """

    epsilon: float = 1e-6

    min_group: ClassVar[int] = 2

    def __call__(self, groups: Sequence[Group]) -> None:
        rewards = [np.array([rollout.reward for rollout in group.scored], dtype=np.float64) for group in groups]
        everything = np.concatenate([*rewards, np.zeros(0)])
        spread = float((everything - everything[:1]).std(ddof=1)) if len(everything) > 1 else 0.0
        for group, own in zip(groups, rewards, strict=True):
            own = own - own[:1]  # equal rewards give exactly 0
            for rollout, reward in zip(group.scored, own, strict=True):
                rollout.set_advantage(float((reward - own.mean()) / (spread + self.epsilon)))


def tricks_or_traps(
    setting: Setting = Setting(),
    low: float = 0.2,  # the lower bound of a ratio is 1 - low
    high: float = 0.2,  # the upper bound of a ratio is 1 + high
) -> Run:
    """The two techniques the paper keeps; `high` up to 0.32 is one of the switches it isolates."""
    return setting.run("tricks_or_traps", SharedSpread(), (Clip(low, high),), reduction=TokenMean())
