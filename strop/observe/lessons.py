"""Pass rates by kind of task over time: what was offered and what was trained, as sums that can grow."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from strop.observe.overlay import MeanCurve, Panel

_WINDOWS = 12  # points of a curve
_LINES = 8  # kinds that can be told apart by colour


class LessonKind(NamedTuple):
    """Tasks of one source and level."""

    source: str
    level: int

    @property
    def name(self) -> str:
        return f"{self.source} level {self.level}"


class Count(NamedTuple):
    """Groups, and of the policy's own attempts in them those that were right, and all."""

    groups: int = 0
    right: float = 0.0
    tried: float = 0.0

    def __add__(self, other: object) -> Count:
        assert isinstance(other, Count)
        return Count(self.groups + other.groups, self.right + other.right, self.tried + other.tried)


Cells: TypeAlias = defaultdict[tuple[LessonKind, int], Count]  # by kind and version


def _cells() -> Cells:
    return defaultdict(Count)


@dataclass
class Lessons:
    """Sums by kind and by the version at which a group was admitted."""

    offered: Cells = field(default_factory=_cells)
    trained: Cells = field(default_factory=_cells)

    @property
    def shown(self) -> list[str]:
        """The kinds that were tried most, in order."""
        counts = Counter[LessonKind]()
        for (kind, _), count in self.offered.items():
            counts[kind] += count.groups
        return [kind.name for kind in sorted(kind for kind, _ in counts.most_common(_LINES))]

    def panels(self) -> list[Panel]:
        """Curves by kind: how often it was tried, how often solved, and that of what was trained, where it differs."""
        shown = [
            Panel("Share of groups", "which levels were tried", self._lines(self.offered, is_share=True), True),
            Panel("Pass rate, offered", "of the policy's own attempts", self._lines(self.offered), True),
            Panel("Pass rate, trained", "of groups that gates let through", self._lines(self.trained), True),
        ]
        left_out = sum(c.groups for c in self.offered.values()) - sum(c.groups for c in self.trained.values())
        return shown if left_out else shown[:2]

    def _lines(self, cells: Cells, is_share: bool = False) -> tuple[MeanCurve, ...]:
        windows = self._windows(cells)
        return tuple(MeanCurve(name, _points(windows, name, is_share)) for name in self.shown)

    def _windows(self, cells: Cells) -> dict[float, Mapping[str, Count]]:
        """Sums by when groups were admitted, in equal stretches of steps, by their middle; then by kind."""
        last = max((version for _, version in self.offered), default=0)
        size = max((last + _WINDOWS) // _WINDOWS, 1)
        held: dict[float, dict[str, Count]] = {}
        for (kind, version), count in sorted(cells.items(), key=lambda cell: cell[0][1]):
            window = held.setdefault(version // size * size + (size - 1) / 2, {})
            window[kind.name] = window.get(kind.name, Count()) + count
        return dict(held)


def _points(
    windows: Mapping[float, Mapping[str, Count]], name: str, is_share: bool
) -> tuple[tuple[float, float, float, float], ...]:
    points = []
    for middle, held in windows.items():
        own = held.get(name, Count())
        if is_share:
            value = own.groups / sum(count.groups for count in held.values())
        elif own.tried:
            value = own.right / own.tried
        else:
            continue
        points.append((middle, value, value, value))
    return tuple(points)
