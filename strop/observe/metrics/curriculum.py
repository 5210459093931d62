"""Curriculum of a run from its ledger: pass rates by level over time, calibration of forecasts, and rollouts without
learning signal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from strop.observe.metrics.pass_rates import Count, LessonKind, Lessons
from strop.storage.ledger.schema import Offered

_DECILES = 10


@dataclass(frozen=True)
class Decile:
    """Groups whose forecast lies in one tenth: their number, the predicted and the observed success rate."""

    groups: int
    predicted: float
    came: float


@dataclass(frozen=True)
class Calibration:
    """Quality of pass-rate forecasts; Brier scores are per rollout, `constant` is that of the mean as forecast."""

    brier: float
    constant: float
    deciles: tuple[Decile, ...]  # those that hold any group


@dataclass(frozen=True)
class Curriculum:
    """Admitted groups of a run that have rollouts."""

    groups: tuple[Offered, ...]

    @property
    def levels(self) -> list[str]:
        """Names of all kinds of tasks, by source and level."""
        return [f"{source} level {level}" for source, level in sorted({(g.source, g.level) for g in self.groups})]

    @property
    def without_gradient(self) -> dict[str, int]:
        """Rollouts in all, those of groups that were never trained, and those trained beside siblings just as good."""
        flat = [group for group in self.groups if group.is_trained and not group.has_contrast]
        return {
            "rollouts": sum(group.rollouts for group in self.groups),
            "untrained": sum(group.rollouts for group in self.groups if not group.is_trained),
            "without_contrast": sum(group.rollouts for group in flat),
        }

    @property
    def calibration(self) -> Calibration | None:
        """Of all groups that were predicted and tried by the policy itself; None: there are none."""
        found = [(g.predicted, g.right, g.tried) for g in self.groups if g.predicted is not None and g.tried > 0]
        if not found:
            return None
        total = sum(count for _, _, count in found)
        mean = sum(right for _, right, _ in found) / total
        missed = sum(right * (1 - f) ** 2 + (count - right) * f**2 for f, right, count in found)
        return Calibration(missed / total, mean * (1 - mean), deciles(found))

    def plain(self) -> dict[str, Any]:
        """For summary.json; levels only where there are several."""
        spent, told = self.without_gradient, self.calibration
        wasted = spent["untrained"] + spent["without_contrast"]
        found: dict[str, Any] = {"rollouts_without_gradient": wasted / spent["rollouts"] if spent["rollouts"] else None}
        if told is not None:
            tenths = [vars(each) for each in told.deciles]
            found["calibration"] = {"brier": told.brier, "brier_of_mean": told.constant, "deciles": tenths}
        if len(self.levels) > 1:
            found["pass_by_level"] = {name: self._of_level(name) for name in self.levels}
        return found

    def _of_level(self, name: str) -> dict[str, Any]:
        groups = [group for group in self.groups if group.name == name]
        chosen = [group for group in groups if group.is_trained]
        return {
            "groups": len(groups),
            "trained": len(chosen),
            "pass_offered": pass_rate(groups),
            "pass_trained": pass_rate(chosen),
        }

    @property
    def lessons(self) -> Lessons:
        """The same as sums by kind and version, which can be drawn."""
        found = Lessons()
        for group in self.groups:
            cell, count = (LessonKind(group.source, group.level), group.version), Count(1, group.right, group.tried)
            found.offered[cell] += count
            if group.is_trained:
                found.trained[cell] += count
        return found


def curriculum_of(offered: Sequence[Offered]) -> Curriculum:
    return Curriculum(tuple(group for group in offered if group.rollouts))


def pass_rate(groups: Sequence[Offered]) -> float | None:
    """Of the policy's own rollouts; None where there are none."""
    count = sum(group.tried for group in groups)
    return sum(group.right for group in groups) / count if count else None


def deciles(found: Sequence[tuple[float, float, float]]) -> tuple[Decile, ...]:
    """Forecasts, successes and rollouts of groups, by tenths of the forecast."""
    tenths: dict[int, list[tuple[float, float, float]]] = {}
    for each in found:
        tenths.setdefault(min(int(each[0] * _DECILES), _DECILES - 1), []).append(each)
    return tuple(_decile(tenths[tenth]) for tenth in sorted(tenths))


def _decile(found: Sequence[tuple[float, float, float]]) -> Decile:
    total = sum(count for _, _, count in found)
    predicted = sum(forecast * count for forecast, _, count in found) / total
    return Decile(len(found), predicted, sum(right for _, right, _ in found) / total)
