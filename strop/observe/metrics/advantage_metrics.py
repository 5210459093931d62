"""What the credit of a draw looks like: how much there is, and what of it the siblings' rewards do not say.

Credit that only compares rewards is, within a group, a straight line over them: (r - mean) times some factor. What lies
beside that line comes from something else: lengths, entropies, noise, a critic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from strop.types import Group, Metrics, Trajectory

_NOTHING = 1e-12  # of a sum of squares


def credit_figures(groups: Sequence[Group]) -> Metrics:
    """`credit` is |A| of a token, `credit_mean` A of an attempt, `credit_within` the spread of A along an attempt.

    `credit_beside_rewards` is the share of the variance among siblings' credit that no line over their rewards
    explains.
    """
    families = [family for group in groups for family in _families(group)]
    attempts = [attempt for family in families for attempt in family]
    given = [_credit(attempt) for attempt in attempts]
    if not given:
        return {}
    means = [_mean(credit) for credit in given]
    return {
        "credit": float(np.abs(np.concatenate(given)).mean()),
        "credit_mean": float(np.mean(means)),
        "credit_within": float(np.mean([_spread(credit) for credit in given])),
        "credit_beside_rewards": _beside_rewards(families, means),
    }


def _families(group: Group) -> list[list[Trajectory]]:
    """Siblings that were compared with each other, those without a token left out."""
    credited = [each for each in group.scored if each.advantages is not None and len(each.advantages)]
    names = dict.fromkeys(attempt.family for attempt in credited)
    return [[attempt for attempt in credited if attempt.family == name] for name in names]


def _credit(attempt: Trajectory) -> NDArray[np.float64]:
    assert attempt.advantages is not None
    return attempt.advantages.astype(np.float64)


def _mean(credit: NDArray[np.float64]) -> float:
    """As the array's own, which takes longer to find out what it is asked."""
    return float(np.add.reduce(credit)) / len(credit)


def _spread(credit: NDArray[np.float64]) -> float:
    beside = credit - _mean(credit)
    return math.sqrt(_mean(beside * beside))


def _beside_rewards(families: Sequence[Sequence[Trajectory]], means: Sequence[float]) -> float:
    total = beside = 0.0
    rest = iter(means)  # by attempt
    for family in families:
        credit = _centred([next(rest) for _ in family])
        rewards = _centred([attempt.reward for attempt in family])
        own, spread = float(credit @ credit), float(rewards @ rewards)
        along = float(credit @ rewards) ** 2 / spread if spread > _NOTHING else 0.0
        total, beside = total + own, beside + own - along
    return max(beside / total, 0.0) if total > _NOTHING else 0.0


def _centred(values: Sequence[float]) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64) - np.mean(values)
