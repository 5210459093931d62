"""Credit under other rewards than those attempts really have: what a mechanism that reshapes rewards does with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from strop.roles import Advantage
from strop.types import Group


def credit_adjusted(
    groups: Sequence[Group], adjust: Callable[[Group], NDArray[np.float64]], advantage: Advantage
) -> None:
    """Let `advantage` give credit as if the rewards of each group's scored attempts were `adjust(group)` [G]."""
    shadows = [_shadow(group, adjust(group)) for group in groups]
    advantage(shadows)
    for group, shadow in zip(groups, shadows, strict=True):
        for attempt, other in zip(group.scored, shadow.trajectories, strict=True):
            attempt.advantages, attempt.returns = other.advantages, other.returns


def _shadow(group: Group, rewards: NDArray[np.float64]) -> Group:
    attempts = zip(group.scored, rewards, strict=True)
    return replace(group, trajectories=[replace(attempt, reward=float(reward)) for attempt, reward in attempts])
