"""Advantages computed from reshaped rewards, with the true rewards restored afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from strop.roles import Advantage
from strop.types import Group


def with_reshaped_rewards(
    groups: Sequence[Group], adjust: Callable[[Group], NDArray[np.float64]], advantage: Advantage
) -> None:
    """Compute `advantage` as if the rewards of each group's scored rollouts were `adjust(group)` [G]."""
    shadows = [_with_rewards(group, adjust(group)) for group in groups]
    advantage(shadows)
    for group, shadow in zip(groups, shadows, strict=True):
        for rollout, other in zip(group.scored, shadow.rollouts, strict=True):
            rollout.advantages, rollout.returns = other.advantages, other.returns


def _with_rewards(group: Group, rewards: NDArray[np.float64]) -> Group:
    rollouts = zip(group.scored, rewards, strict=True)
    return replace(group, rollouts=[replace(rollout, reward=float(reward)) for rollout, reward in rollouts])
