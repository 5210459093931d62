"""Means over seeds with their 95% intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from strop.stats.student_t import student

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
