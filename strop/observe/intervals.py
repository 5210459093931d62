"""Means over seeds with their 95% intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

# two-sided 95% quantiles of Student's t by degrees of freedom; beyond them within 1% of the last
_STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
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
    half = _STUDENT[min(count - 1, len(_STUDENT)) - 1] * spread / math.sqrt(count)
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
