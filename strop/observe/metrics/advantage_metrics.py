"""Metrics of a batch's advantages: their size, and the part that the rewards of the group do not explain.

Within a group, an advantage that only compares rewards is linear in them: (r - mean) times some factor. The residual
comes from something else: lengths, entropies, noise, a critic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from strop.types import Group, Metrics, Rollout

_NOTHING = 1e-12  # of a sum of squares


def advantage_metrics(groups: Sequence[Group]) -> Metrics:
    """`advantage` is |A| of a token, `advantage_mean` A of a rollout, `advantage_within` the spread of A along one.

    `advantage_beside_rewards` is the share of the variance among siblings' advantage that no line over their rewards
    explains.
    """
    comparison_groups = [comparison_group for group in groups for comparison_group in _comparison_groups(group)]
    rollouts = [rollout for comparison_group in comparison_groups for rollout in comparison_group]
    given = [_advantage(rollout) for rollout in rollouts]
    if not given:
        return {}
    means = [_mean(advantage) for advantage in given]
    return {
        "advantage": float(np.abs(np.concatenate(given)).mean()),
        "advantage_mean": float(np.mean(means)),
        "advantage_within": float(np.mean([_spread(advantage) for advantage in given])),
        "advantage_beside_rewards": _beside_rewards(comparison_groups, means),
    }


def _comparison_groups(group: Group) -> list[list[Rollout]]:
    """Siblings that were compared with each other, those without a token left out."""
    with_advantages = [each for each in group.scored if each.advantages is not None and len(each.advantages)]
    names = dict.fromkeys(rollout.comparison_group for rollout in with_advantages)
    return [[rollout for rollout in with_advantages if rollout.comparison_group == name] for name in names]


def _advantage(rollout: Rollout) -> NDArray[np.float64]:
    assert rollout.advantages is not None
    return rollout.advantages.astype(np.float64)


def _mean(advantage: NDArray[np.float64]) -> float:
    """As the array's own, which takes longer to find out what it is asked."""
    return float(np.add.reduce(advantage)) / len(advantage)


def _spread(advantage: NDArray[np.float64]) -> float:
    beside = advantage - _mean(advantage)
    return math.sqrt(_mean(beside * beside))


def _beside_rewards(comparison_groups: Sequence[Sequence[Rollout]], means: Sequence[float]) -> float:
    total = beside = 0.0
    rest = iter(means)  # by rollout
    for comparison_group in comparison_groups:
        advantage = _centred([next(rest) for _ in comparison_group])
        rewards = _centred([rollout.reward for rollout in comparison_group])
        own, spread = float(advantage @ advantage), float(rewards @ rewards)
        along = float(advantage @ rewards) ** 2 / spread if spread > _NOTHING else 0.0
        total, beside = total + own, beside + own - along
    return max(beside / total, 0.0) if total > _NOTHING else 0.0


def _centred(values: Sequence[float]) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64) - np.mean(values)
