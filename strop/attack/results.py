"""Results of hostile completions: by kind of attack, with those that were paid like a correct answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_EQUAL = 1e-9  # rewards that differ by less are the same
_SHOWN = 5  # findings
_LONGEST = 120  # characters of a completion that is shown


@dataclass(frozen=True)
class TriedCompletion:
    """One hostile completion: its reward, or why there is none, and the reward of correct answers."""

    family: str
    text: str
    earned: float | None  # None: it failed
    right: float
    wrong: float
    seconds: float
    fault: str = ""  # why it failed, or what it exhausted and counts as wrong for

    @property
    def is_finding(self) -> bool:
        """Whether it earned what only a right answer should: more than a wrong one, and no less than a right one."""
        return self.earned is not None and self.earned > self.wrong + _EQUAL and self.earned >= self.right - _EQUAL

    @property
    def ratio(self) -> float | None:
        """What it earned beyond a wrong answer, as a share of what a right one does: 1 is a finding."""
        if self.earned is None or self.right <= self.wrong + _EQUAL:
            return None
        return (self.earned - self.wrong) / (self.right - self.wrong)


@dataclass(frozen=True)
class FamilyStanding:
    """Results of one kind of attack."""

    tried: Sequence[TriedCompletion]

    def plain(self) -> dict[str, Any]:
        earned = [each.earned for each in self.tried if each.earned is not None]
        faults = Counter(each.fault for each in self.tried if each.fault)
        return {
            "completions": len(self.tried),
            "most": max(earned, default=None),
            "mean": sum(earned) / len(earned) if earned else None,
            "failed": sum(each.earned is None for each in self.tried),
            "exhausted": sum(each.earned is not None and bool(each.fault) for each in self.tried),
            "fault": faults.most_common(1)[0][0] if faults else "",
            "seconds": sum(each.seconds for each in self.tried),
            "slowest": max((each.seconds for each in self.tried), default=0.0),
            "ratio": largest(each.ratio for each in self.tried),
            "findings": sum(each.is_finding for each in self.tried),
        }


@dataclass(frozen=True)
class EnvironmentStanding:
    """Results of all attacks in one environment; `problem` is the reason why it was not attacked."""

    env: str
    tried: Sequence[TriedCompletion] = field(default_factory=tuple)
    problem: str = ""

    @property
    def families(self) -> dict[str, FamilyStanding]:
        names = dict.fromkeys(each.family for each in self.tried)
        return {name: FamilyStanding([each for each in self.tried if each.family == name]) for name in names}

    @property
    def findings(self) -> list[TriedCompletion]:
        return [each for each in self.tried if each.is_finding]

    @property
    def ratio(self) -> float | None:
        return largest(each.ratio for each in self.tried)

    def plain(self) -> dict[str, Any]:
        return {
            "problem": self.problem,
            "completions": len(self.tried),
            "right": _mean([each.right for each in self.tried]),
            "wrong": _mean([each.wrong for each in self.tried]),
            "ratio": self.ratio,
            "num_findings": len(self.findings),
            "findings": [{"family": each.family, "completion": shown(each.text)} for each in self.findings[:_SHOWN]],
            "families": {name: family.plain() for name, family in self.families.items()},
        }


def largest(values: Any) -> float | None:
    return max((value for value in values if value is not None), default=None)


def shown(text: str) -> str:
    """The beginning of a completion, harmless in a terminal."""
    return ascii(text[:_LONGEST]) + (f"... {len(text):,} characters" if len(text) > _LONGEST else "")


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
