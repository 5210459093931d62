"""Ratings from fights by maximum likelihood: P(i beats j) = 1 / (1 + 10^((R_j - R_i) / 400)).

One tie is added to every two who fought, or a player without a loss would be rated infinite.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_SCALE = 400.0  # tenfold odds
_ROUNDS = 10_000
_ENOUGH = 1e-12


def ratings(wins: NDArray[np.float64], anchor: int = 0, at: float = 1000.0) -> list[float]:
    """Of each player; `wins[i, j]` is how often i beat j, a tie one half each; the anchor's rating is `at`: [K, K]."""
    fought = (wins + wins.T > 0).astype(np.float64)  # [K, K]
    held = wins + fought / 2
    played, won = held + held.T, held.sum(1)
    strength = np.ones(len(wins))
    for _ in range(_ROUNDS):  # Zermelo's iteration, which rises to the one maximum
        share = (played / (strength[:, None] + strength[None, :])).sum(1)
        after = np.where(share > 0, won / np.maximum(share, 1e-300), strength)
        after /= np.exp(np.log(after).mean())
        is_done = np.abs(after - strength).max() < _ENOUGH
        strength = after
        if is_done:
            break
    return [at + _SCALE * math.log10(each / strength[anchor]) for each in strength.tolist()]


def chance(rating: float, other: float) -> float:
    """That one of this rating beats the other."""
    return 1 / (1 + 10 ** ((other - rating) / _SCALE))
