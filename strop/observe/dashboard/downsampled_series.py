"""Downsampled metrics of a growing run: neighbouring steps are averaged so that a curve never exceeds the screen
width.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from strop.observe.report.default_charts import point_of
from strop.observe.report.svg_charts import Point

_MOST = 480  # bins; a chart draws half as many


@dataclass
class _Bin:
    """Neighbouring steps: their mean, and the last of them."""

    count: int
    total: float
    last: Point

    def joined(self, other: _Bin) -> _Bin:
        return _Bin(self.count + other.count, self.total + other.total, other.last)


@dataclass
class Column:
    """One metric over steps, in bins of `size` values."""

    size: int = 1
    first: Point | None = None
    bins: list[_Bin] = field(default_factory=list)
    _points: tuple[Point, ...] | None = field(default=None, repr=False)  # kept while nothing is added

    def add(self, point: Point) -> None:
        self._points, self.first = None, self.first or point
        found = _Bin(1, point.value, point)
        if self.bins and self.bins[-1].count < self.size:
            self.bins[-1] = self.bins[-1].joined(found)
            return
        self.bins.append(found)
        if len(self.bins) > _MOST:
            self.size *= 2
            pairs = zip(self.bins[::2], self.bins[1::2], strict=False)
            odd = self.bins[-1:] if len(self.bins) % 2 else []
            self.bins = [left.joined(right) for left, right in pairs] + odd

    @property
    def points(self) -> tuple[Point, ...]:
        if self._points is None:
            self._points = tuple(Point(b.last.step, b.total / b.count, b.last.low, b.last.high) for b in self.bins)
        return self._points

    @property
    def last(self) -> Point | None:
        return self.bins[-1].last if self.bins else None

    def at(self, steps: Sequence[float]) -> list[float]:
        """What it was at these steps, on straight lines between those that are known: for totals, which only grow."""
        known = [each.last for each in self.bins]
        return np.interp(steps, [0.0, *(p.step for p in known)], [0.0, *(p.value for p in known)]).tolist()


@dataclass
class Columns:
    """All metrics of a run."""

    by_name: dict[str, Column] = field(default_factory=dict)
    first: int = 0  # step
    last: int = 0
    _seconds: float = 0.0

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Rows of metrics.jsonl or timing.jsonl, each kind in its order."""
        for row in rows:
            self.first, self.last = min(self.first, row["step"]), max(self.last, row["step"])
            if "seconds" in row:
                self._seconds += row["seconds"]
                row["minutes"] = self._seconds / 60
            for name in row:
                if name != "step" and (point := point_of(name, row)) is not None:
                    self.by_name.setdefault(name, Column()).add(point)

    def points(self, name: str) -> tuple[Point, ...]:
        found = self.by_name.get(name)
        return found.points if found else ()

    def ends(self, name: str) -> tuple[Point | None, Point | None]:
        """The first one and the last."""
        found = self.by_name.get(name, Column())
        return found.first, found.last

    def value(self, name: str) -> float | None:
        """The last one."""
        _, last = self.ends(name)
        return last.value if last else None
