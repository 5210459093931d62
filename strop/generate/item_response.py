"""How accuracy grows with the share of a solution that is shown: a curve of item response theory, and its fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_STEEPNESS, _EASE = (1.0, 64.0), (-1.5, 0.5)  # within which a fit looks
_USUAL = (8.0, -0.5)  # steepness and ease of a task of which nothing is known: half of it shown, half are right
_MOST_GUESSED = 0.9
_DOUBT = 1e-4  # how much a squared step away from the usual costs, beside squared errors of accuracy
_GRID, _ZOOMS = 33, 5


@dataclass(frozen=True)
class HintCurve:
    """f(p) = guess + (1 - guess) / (1 + exp(-steepness * (p + ease)))."""

    steepness: float
    ease: float
    guess: float = 0.0

    def __call__(self, share: float) -> float:
        return self.guess + (1 - self.guess) / (1 + math.exp(-self.steepness * (share + self.ease)))

    def place(self, accuracy: float) -> float:
        """The share at which it has this accuracy, wherever that is; minus infinity where it always has more."""
        if accuracy <= self.guess:
            return -math.inf
        odds = (1 - self.guess) / (accuracy - self.guess) - 1
        return -self.ease - math.log(odds) / self.steepness

    def share(self, accuracy: float) -> float:
        """The same within 0 and 1."""
        return min(max(self.place(accuracy), 0.0), 1.0)


def fitted(points: Sequence[tuple[float, float, float]]) -> HintCurve:
    """The curve of least squared errors through (share, accuracy, weight), as near to the usual one as they allow.

    A grid of steepness and ease that is drawn closer around the best: for each of them the best guess is known exactly.
    """
    low, high = np.array([math.log(_STEEPNESS[0]), _EASE[0]]), np.array([math.log(_STEEPNESS[1]), _EASE[1]])
    lowest, highest, best = low, high, (0.0, 0.0, 0.0)
    for _ in range(_ZOOMS):
        best = _best(points, np.linspace(low[0], high[0], _GRID), np.linspace(low[1], high[1], _GRID))
        around = 2 * (high - low) / (_GRID - 1)
        low, high = np.maximum(best[:2] - around, lowest), np.minimum(best[:2] + around, highest)
    return HintCurve(math.exp(best[0]), best[1], best[2])


def _best(
    points: Sequence[tuple[float, float, float]], steepness: np.ndarray, ease: np.ndarray
) -> tuple[float, float, float]:
    """Logarithm of the steepness, ease and guess."""
    shares, found, weights = (np.array(column) for column in zip(*points, strict=True))  # [P]
    logs, eases = np.meshgrid(steepness, ease, indexing="ij")  # [K, M]
    rise = 1 / (1 + np.exp(-np.exp(logs)[..., None] * (shares + eases[..., None])))  # [K, M, P]
    free = (weights * (1 - rise) ** 2).sum(-1)
    guess = np.clip((weights * (1 - rise) * (found - rise)).sum(-1) / np.maximum(free, 1e-12), 0, _MOST_GUESSED)
    errors = (weights * (guess[..., None] + (1 - guess[..., None]) * rise - found) ** 2).sum(-1) / weights.sum()
    away = (logs - math.log(_USUAL[0])) ** 2 + (eases - _USUAL[1]) ** 2 + guess**2
    place = np.unravel_index(np.argmin(errors + _DOUBT * away), errors.shape)
    return float(logs[place]), float(eases[place]), float(guess[place])
