"""Confidence intervals: proportions, paired differences, Student's t."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

# Student's t: how wide an interval around a mean of few numbers must be.

# two-sided 95% quantiles of Student's t by degrees of freedom; beyond them within 1% of the last
_STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


_SIGMAS = 1.959964  # of a normal 95% interval
_POWER = 0.841621  # 80% quantile of the normal distribution


def student(freedom: int) -> float:
    """The two-sided 95% quantile of Student's t."""
    return _STUDENT[min(freedom, len(_STUDENT)) - 1]


def detectable(half: float, freedom: int | None = None) -> float:
    """The difference that such a comparison shows in 80% of all trials, from half the width of its 95% interval.

    Without `freedom` the interval is normal. Student's 80% quantile is expanded about the normal one (Fisher and
    Cornish), within 1% for one degree of freedom and more.
    """
    if freedom is None:
        return half * (1 + _POWER / _SIGMAS)
    z = _POWER
    terms = ((z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384)
    quantile: float = z + sum(term / float(freedom) ** order for order, term in enumerate(terms, start=1))
    return half * (1 + quantile / student(freedom))


# Means over seeds with their 95% intervals.

Spread: TypeAlias = tuple[float, float | None, float | None]  # mean, low, high; one seed has no interval


@dataclass(frozen=True)
class Difference:
    """A mean over paired seeds with its 95% interval."""

    mean: float
    low: float
    high: float


def paired(left: Sequence[float], right: Sequence[float]) -> Difference:
    """left - right over pairs, with Student's interval for their mean."""
    differences = [a - b for a, b in zip(left, right, strict=True)]
    count = len(differences)
    mean = sum(differences) / count
    spread = math.sqrt(sum((d - mean) ** 2 for d in differences) / (count - 1))
    half = student(count - 1) * spread / math.sqrt(count)
    return Difference(mean, mean - half, mean + half)


def over_seeds(values: Sequence[float]) -> Spread:
    """Mean and 95% interval; no interval from one seed."""
    if len(values) < 2:
        return values[0], None, None
    found = paired(values, [0.0] * len(values))
    return found.mean, found.low, found.high


def share_over_seeds(values: Sequence[float]) -> Spread:
    """The same of shares, whose interval ends at 0 and 1."""
    mean, low, high = over_seeds(values)
    return mean, None if low is None else max(low, 0.0), None if high is None else min(high, 1.0)


# How two models differ on the same tasks: task by task, which is surer than two accuracies apart.


def over_tasks(left: Sequence[float], right: Sequence[float]) -> Difference:
    """Mean of left - right, each the share of right rollouts of one task, with its 95% interval.

    The interval is that of Bonett and Price (2012): as if two more tasks had been tried, one won and one lost, so that
    it has a width even where nothing differs. The mean is that of the real tasks.
    """
    differences = [a - b for a, b in zip(left, right, strict=True)]
    size = len(differences) + 2
    centre = sum(differences) / size
    variance = (sum(each**2 for each in differences) + 2) / size - centre**2
    half = _SIGMAS * math.sqrt(variance / size)
    mean = sum(differences) / len(differences) if differences else math.nan
    return Difference(mean, max(centre - half, -1.0), min(centre + half, 1.0))


def wilson_low(successes: int, trials: int, z: float = 1.96) -> float:
    """Lower bound of a share (Wilson, 1927)."""
    if not trials:
        return 0.0
    share, weight = successes / trials, z * z / trials
    half = z * math.sqrt(share * (1 - share) / trials + weight / (4 * trials))
    return (share + weight / 2 - half) / (1 + weight)
