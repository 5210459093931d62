"""Data of a certificate: for each check, what was tried, how often, the findings, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class CheckFinding:
    """Undesired behaviour of a reward or an environment; a warning may be intended."""

    text: str
    example: str = ""  # a completion that shows it
    is_warning: bool = False

    def plain(self) -> dict[str, Any]:
        return {"finding": self.text, "example": self.example, "warning": self.is_warning}


@dataclass
class CheckResult:
    """Result of one check."""

    name: str
    tried: int = 0  # completions, or rows that were compared
    what: str = ""  # what was tried
    findings: list[CheckFinding] = field(default_factory=list)
    table: dict[str, str] = field(default_factory=dict)  # metrics by what they are of
    left_out: str = ""  # why it was not tried, or not in full

    @property
    def verdict(self) -> str:
        """In one word."""
        if any(not each.is_warning for each in self.findings):
            return "fault"
        if self.findings:
            return "warning"
        return "sound" if self.tried else "not tried"

    def fault(self, text: str, example: str = "") -> None:
        self.findings.append(CheckFinding(text, example))

    def warn(self, text: str, example: str = "") -> None:
        self.findings.append(CheckFinding(text, example, is_warning=True))

    def plain(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "verdict": self.verdict,
            "tried": self.tried,
            "what": self.what,
            "findings": [each.plain() for each in self.findings],
            "table": self.table,
            "left_out": self.left_out,
        }


@dataclass(frozen=True)
class Certificate:
    """Results of all checks of one environment and its rewards."""

    subject: str  # what was named
    env: str
    rewards: tuple[str, ...]
    version: str
    seed: int
    seconds: float
    checks: Sequence[CheckResult]

    @property
    def faults(self) -> list[tuple[str, CheckFinding]]:
        return [(check.name, each) for check in self.checks for each in check.findings if not each.is_warning]

    @property
    def warnings(self) -> list[tuple[str, CheckFinding]]:
        return [(check.name, each) for check in self.checks for each in check.findings if each.is_warning]

    @property
    def is_passed(self) -> bool:
        return not self.faults

    def plain(self) -> dict[str, Any]:
        return {
            "format": 1,
            "subject": self.subject,
            "episode": self.env,
            "rewards": list(self.rewards),
            "strop": self.version,
            "seed": self.seed,
            "seconds": round(self.seconds, 1),
            "verdict": "pass" if self.is_passed else "fail",
            "faults": len(self.faults),
            "warnings": len(self.warnings),
            "tried": sum(each.tried for each in self.checks),
            "checks": [each.plain() for each in self.checks],
        }
