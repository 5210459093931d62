"""Bootstrap over runs: importance of settings, and the best value of each (2507.04103).

Runs are resampled with replacement with weights 1 / (runs with the same value), because otherwise the value that was
tried most would win more often. For each resample the best run of every value is recorded, and the value of the best
run of all. A value that a resample does not contain is missing from it, and not 0. The best of several is biased
upwards: results of two values may be compared, and say nothing about a single run. Reading: equal bests share a win.
Papers: web-agent-diagnosis
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.errors import ConfigurationError

_INTERVAL = (2.5, 97.5)  # percentiles


@dataclass(frozen=True)
class ValueStanding:
    """Results of one value of a setting."""

    value: str
    runs: int
    wins: float  # share of resamples whose best run has it
    best: float  # of its runs in a resample, in the mean over those that hold it
    low: float  # of the best, 95%
    high: float
    median: float = float("nan")  # of the best: a mean may lie outside of the interval


def standings(
    values: Sequence[str], scores: Sequence[float], resamples: int = 1000, size: int = 0, seed: int = 0
) -> list[ValueStanding]:
    """Every value of one setting, who wins most often first; `size` runs in a resample, 0: as many as there are."""
    if len(values) != len(scores) or not values or resamples < 1 or size < 0:
        raise ConfigurationError(
            f"standings need as many values as scores, at least 1, and resamples >= 1, got {len(values)}, "
            f"{len(scores)} and {resamples}"
        )
    names = sorted(set(values))
    of_run = np.array([names.index(value) for value in values])  # [R]
    weights = 1.0 / np.bincount(of_run)[of_run]
    drawn = np.random.default_rng(seed).choice(
        len(values), (resamples, size or len(values)), p=weights / weights.sum()
    )  # [B, S]
    bests = _bests(of_run[drawn], np.asarray(scores, dtype=np.float64)[drawn], len(names))  # [B, V]
    is_best = bests == np.nanmax(bests, axis=1, keepdims=True)
    wins = (is_best / is_best.sum(1, keepdims=True)).mean(0)
    found = [_standing(name, list(values).count(name), wins[at], bests[:, at]) for at, name in enumerate(names)]
    return sorted(found, key=lambda standing: -standing.wins)


def _bests(values: np.ndarray, scores: np.ndarray, count: int) -> np.ndarray:
    """The best score of each value in each resample, NaN where it is missing: [B, S], [B, S] -> [B, V]."""
    held = [np.where(values == number, scores, -np.inf).max(1) for number in range(count)]
    return np.where(np.isneginf(table := np.stack(held, 1)), np.nan, table)


def _standing(name: str, runs: int, wins: float, bests: np.ndarray) -> ValueStanding:
    seen = bests[~np.isnan(bests)]
    if not len(seen):
        return ValueStanding(name, runs, 0.0, float("nan"), float("nan"), float("nan"))
    low, high = np.percentile(seen, _INTERVAL)
    return ValueStanding(name, runs, float(wins), float(seen.mean()), float(low), float(high), float(np.median(seen)))


def picked(scores: Sequence[float]) -> float:
    """What a run reached: its score where the mean with its neighbours is best, the last of equals, not smoothed."""
    if not scores:
        raise ConfigurationError("a run without any measurement reached nothing")
    # rounded, or which of two equal means is larger would be left to the order of additions
    smooth = [round(float(np.mean(scores[max(at - 1, 0) : at + 2])), 9) for at in range(len(scores))]
    return float(scores[max(range(len(scores)), key=lambda at: (smooth[at], at))])
