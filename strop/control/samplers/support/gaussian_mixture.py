"""Gaussian mixture models fitted by EM, with the number of components chosen by AIC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.control.seeded_choice import Doubles

_WIDENED = 1e-6  # added to each variance, or points on a line would have no density
_ROUNDS, _SETTLED = 100, 1e-6  # of the fit; gain in mean log density that ends it


@dataclass(frozen=True, eq=False)
class Gaussians:
    """Mixture of K Gaussians with full covariances."""

    weights: Doubles  # [K]
    means: Doubles  # [K, D]
    covariances: Doubles  # [K, D, D]

    def log_densities(self, points: Doubles) -> Doubles:
        """Of each point under each one, weights included: [N, K]."""
        apart = points[:, None, :] - self.means[None]  # [N, K, D]
        solved = np.linalg.solve(self.covariances[None], apart[..., None])[..., 0]
        distances = (apart * solved).sum(2)
        sizes = np.linalg.slogdet(self.covariances)[1] + points.shape[1] * np.log(2 * np.pi)
        return np.asarray(np.log(np.maximum(self.weights, 1e-300)) - (distances + sizes) / 2)

    def criterion(self, points: Doubles) -> float:
        """Akaike's: twice what is free less twice the log density of the points; the lower, the better."""
        count, width = self.means.shape
        free = count - 1 + count * width + count * width * (width + 1) // 2
        return float(2 * free - 2 * _log_sums(self.log_densities(points)).sum())


def fitted(points: Doubles, counts: Sequence[int], key: Sequence[int]) -> Gaussians:
    """The best of fits with these numbers of Gaussians to [N, D]."""
    fits = [_fit(points, min(count, len(points)), [*key, count]) for count in counts]
    return min(fits, key=lambda fit: fit.criterion(points))


def _fit(points: Doubles, count: int, key: Sequence[int]) -> Gaussians:
    random, width = np.random.default_rng(list(key)), points.shape[1]
    means = points[random.choice(len(points), count, replace=False)]
    spread = np.cov(points.T, bias=True).reshape(width, width) + _WIDENED * np.eye(width)
    fit, before = Gaussians(np.full(count, 1 / count), means, np.tile(spread, (count, 1, 1))), -np.inf
    for _ in range(_ROUNDS):
        logs = fit.log_densities(points)
        sums = _log_sums(logs)
        if sums.mean() - before < _SETTLED:
            break
        before, fit = float(sums.mean()), _maximized(points, np.exp(logs - sums[:, None]))
    return fit


def _maximized(points: Doubles, shares: Doubles) -> Gaussians:
    """The Gaussians that fit best where each point belongs to them in these shares: [N, K]."""
    masses = shares.sum(0) + 1e-12  # [K]
    means = shares.T @ points / masses[:, None]
    apart = points[:, None, :] - means[None]  # [N, K, D]
    covariances = np.einsum("nk,nki,nkj->kij", shares, apart, apart) / masses[:, None, None]
    return Gaussians(masses / masses.sum(), means, covariances + _WIDENED * np.eye(points.shape[1]))


def _log_sums(logs: Doubles) -> Doubles:
    """log of the sum of exponentials of each row: [N]."""
    most = logs.max(axis=1)
    return np.asarray(most + np.log(np.exp(logs - most[:, None]).sum(axis=1)))
