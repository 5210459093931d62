"""Whether a curve still falls as it began: without hacking, distances fall with a power of the steps (2502.02671)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def power_law(steps: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """c and k of values = c * steps^-k, by least squares of their logarithms."""
    slope, height = np.polyfit(np.log(steps), np.log(values), 1)
    return float(np.exp(height)), float(-slope)


def departs(steps: Sequence[float], values: Sequence[float], early: float = 0.5, tolerance: float = 0.25) -> bool:
    """Whether the last value lies off the law of the first share `early` by more than a factor e^tolerance."""
    count = max(int(early * len(steps)), 2)
    if len(steps) <= count:
        return False
    scale, exponent = power_law(steps[:count], values[:count])
    return bool(abs(np.log(values[-1]) - np.log(scale * steps[-1] ** -exponent)) > tolerance)


def turned(proxy: Sequence[float], golden: Sequence[float], window: int) -> int | None:
    """Where the golden minimum is, if it lies `window` or more behind the end and the proxy fell since; else None."""
    lowest = int(np.argmin(golden)) if len(golden) else 0
    is_behind = len(golden) - 1 - lowest >= window
    return lowest if is_behind and proxy[-1] < proxy[lowest] else None
