"""Seeded selection by score, highest or proportional, so that a resumed run makes the same choices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


def highest(scores: Sequence[float] | Doubles, count: int, key: Sequence[int]) -> list[int]:
    """The places of the `count` highest, best first; ties are broken at random, or the last ones would starve."""
    values = np.asarray(scores, dtype=np.float64)
    ties = np.random.default_rng(list(key)).random(len(values))
    return [int(place) for place in np.lexsort((ties, -values))[:count]]


def softmax(scores: Sequence[float] | Doubles, temperature: float = 1.0) -> Doubles:
    values = np.asarray(scores, dtype=np.float64) / temperature
    powers = np.exp(values - values.max())
    return np.asarray(powers / powers.sum())


def drawn(weights: Sequence[float] | Doubles, count: int, key: Sequence[int]) -> list[int]:
    """`count` places without replacement, each next one in proportion to its weight among those left.

    Exponential clocks: place i rings at E_i / w_i, and the first to ring are taken. What weighs nothing comes last.
    """
    values = np.asarray(weights, dtype=np.float64)
    clocks = np.random.default_rng(list(key)).exponential(size=len(values))
    with np.errstate(divide="ignore", over="ignore"):  # so does what weighs next to nothing
        return [int(place) for place in np.lexsort((clocks, clocks / values))[:count]]
