"""Divergence of reward and held-out accuracy: the reward rises while the accuracy it stands for falls (reward
hacking).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from strop.stats.intervals import student

_SHARE = 1 / 3  # of a run, its end, is looked at
_LEAST = 4  # steps: a line through fewer of them says nothing


@dataclass(frozen=True)
class Parting:
    """Change of both between two steps."""

    first: int
    last: int
    rise: float  # of the reward, along the line through all steps between
    before: float  # held-out accuracy
    after: float

    def __str__(self) -> str:
        return (
            f"reward and held-out accuracy part ways: from step {self.first} to {self.last} the reward rose by "
            f"{self.rise:.3g} while held-out accuracy fell from {self.before:.0%} to {self.after:.0%}, both beyond "
            "their 95% intervals"
        )


def parting_of(rows: Sequence[dict[str, Any]]) -> Parting | None:
    """Of the rows of metrics.jsonl: None unless both moved apart over the last third, each beyond its 95% interval.

    It begins at the last measurement of held-out accuracy before that third, and ends at the last one there is. Each
    test alone is wrong once in 40 times where nothing moves, so both are once in 1,600.
    """
    measured = [row for row in rows if _has(row, "heldout") and _has(row, "heldout_low") and _has(row, "heldout_high")]
    if len(measured) < 2:
        return None
    end = measured[-1]
    begin = next((row for row in reversed(measured) if row["step"] <= (1 - _SHARE) * end["step"]), measured[0])
    rewards = [row for row in rows if begin["step"] < row["step"] <= end["step"] and _has(row, "reward")]
    slope = sure_slope([(row["step"], row["reward"]) for row in rewards])
    if slope <= 0 or not is_fall(begin, end):
        return None
    rise = slope * (rewards[-1]["step"] - rewards[0]["step"])
    return Parting(begin["step"], end["step"], rise, begin["heldout"], end["heldout"])


def sure_slope(points: Sequence[tuple[float, float]]) -> float:
    """Of the line of least squares; 0 where Student's 95% interval of it holds 0, or there are too few points."""
    count = len(points)
    if count < _LEAST:
        return 0.0
    x_mean, y_mean = (sum(values) / count for values in zip(*points, strict=True))
    spread = sum((x - x_mean) ** 2 for x, _ in points)
    slope = sum((x - x_mean) * (y - y_mean) for x, y in points) / spread
    rest = sum((y - y_mean - slope * (x - x_mean)) ** 2 for x, y in points)
    half = student(count - 2) * math.sqrt(rest / (count - 2) / spread)
    return slope if abs(slope) > half else 0.0


def is_fall(begin: dict[str, Any], end: dict[str, Any]) -> bool:
    """Whether the 95% interval of the difference lies below 0; half its width is the root of both squares' sum.

    The same tasks are measured every time, so the difference is surer than that: the test errs to silence.
    """
    low, high = end["heldout_high"] - end["heldout"], begin["heldout"] - begin["heldout_low"]
    return bool(end["heldout"] + math.hypot(low, high) < begin["heldout"])


def _has(row: dict[str, Any], name: str) -> bool:
    value = row.get(name)
    return isinstance(value, int | float) and math.isfinite(value)
