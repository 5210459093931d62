"""Pass rates by kind of task over time, of offered and of trained groups, as sums that can grow."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from strop.observe.report.multi_run_chart import MeanCurve, Panel

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
    """Number of groups, and of the policy's own rollouts in them: correct ones, and all."""

    groups: int = 0
    right: float = 0.0
    tried: float = 0.0

    def __add__(self, other: object) -> Count:
        assert isinstance(other, Count)
        return Count(self.groups + other.groups, self.right + other.right, self.tried + other.tried)


Cells: TypeAlias = defaultdict[tuple[LessonKind, int], Count]  # by kind and version
# by the middle of a stretch of steps and the name of a kind: groups, right and tried
Windows: TypeAlias = Mapping[float, Mapping[str, Sequence[float]]]


def _cells() -> Cells:
    return defaultdict(Count)


@dataclass
class Lessons:
    """Sums by kind and by the version at which a group was admitted."""

    offered: Cells = field(default_factory=_cells)
    trained: Cells = field(default_factory=_cells)

    @property
    def num_kinds(self) -> int:
        return len({kind for kind, _ in self.offered})

    @property
    def shown(self) -> list[str]:
        """The kinds that were tried most, in order."""
        counts = Counter[LessonKind]()
        for (kind, _), count in self.offered.items():
            counts[kind] += count.groups
        return [kind.name for kind in sorted(kind for kind, _ in counts.most_common(_LINES))]

    def panels(self) -> list[Panel]:
        """Curves by kind: how often it was tried, how often solved, and that of what was trained, where it differs."""
        names, offered = self.shown, self._windows(self.offered)
        shown = [
            Panel("Share of groups", "which levels were tried", _lines(names, offered, is_share=True), True),
            Panel("Pass rate, offered", "of the policy's own rollouts", _lines(names, offered), True),
        ]
        left_out = sum(c.groups for c in self.offered.values()) - sum(c.groups for c in self.trained.values())
        lines = _lines(names, self._windows(self.trained)) if left_out else ()
        return (
            [*shown, Panel("Pass rate, trained", "of groups that gates let through", lines, True)] if lines else shown
        )

    def _windows(self, cells: Cells) -> Windows:
        """Sums by when groups were admitted, in equal stretches of steps."""
        last = max((version for _, version in self.offered), default=0)
        size = max((last + _WINDOWS) // _WINDOWS, 1)
        held: dict[int, dict[str, list[float]]] = {}
        for (kind, version), count in cells.items():
            sums = held.setdefault(version // size, {}).setdefault(kind.name, [0.0, 0.0, 0.0])
            for place, value in enumerate(count):
                sums[place] += value
        return {window * size + (size - 1) / 2: held[window] for window in sorted(held)}


def _lines(names: Sequence[str], windows: Windows, is_share: bool = False) -> tuple[MeanCurve, ...]:
    return tuple(MeanCurve(name, _points(windows, name, is_share)) for name in names)


def _points(windows: Windows, name: str, is_share: bool) -> tuple[tuple[float, float, float, float], ...]:
    points = []
    for middle, held in windows.items():
        groups, right, tried = held.get(name, (0.0, 0.0, 0.0))
        if is_share:
            value = groups / sum(sums[0] for sums in held.values())
        elif tried:
            value = right / tried
        else:
            continue
        points.append((middle, value, value, value))
    return tuple(points)
