"""Lite PPO: advantages from group mean and batch standard deviation, token-mean loss, PPO clipping; no critic.

Title: Part I: Tricks or Traps? A Deep Dive into RL for LLM Reasoning
Paper: arXiv 2508.08221 (2025)
Claim: These two techniques on plain PPO steps are better than GRPO and DAPO.
Reading: The standard deviation is that of the raw rewards, not of the centred ones. `high` up to 0.32 is one of the
    options that the paper studies.
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


@dataclass(frozen=True)
class GroupMeanBatchStd(Advantage):
    """A = (r - group mean) / (batch std + epsilon), std with n - 1.

    Differences between tasks keep the batch std away from 0 where the rewards of a group are equal.
    """

    epsilon: float = 1e-6

    min_group: ClassVar[int] = 2

    def __call__(self, groups: Sequence[Group]) -> None:
        rewards = [np.array([rollout.reward for rollout in group.scored], dtype=np.float64) for group in groups]
        all_rewards = np.concatenate([*rewards, np.zeros(0)])
        std = float((all_rewards - all_rewards[:1]).std(ddof=1)) if len(all_rewards) > 1 else 0.0
        for group, own in zip(groups, rewards, strict=True):
            own = own - own[:1]  # equal rewards give exactly 0
            for rollout, reward in zip(group.scored, own, strict=True):
                rollout.set_advantage(float((reward - own.mean()) / (std + self.epsilon)))


def tricks_or_traps(
    setting: Setting = Setting(),
    low: float = 0.2,  # lower clip range: ratios are at least 1 - low
    high: float = 0.2,  # upper clip range: ratios are at most 1 + high
) -> Run:
    """The two techniques that the paper recommends, on clipped policy gradients."""
    return setting.run("tricks_or_traps", GroupMeanBatchStd(), (Clip(low, high),), reduction=TokenMean())
