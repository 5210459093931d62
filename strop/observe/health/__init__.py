"""Health rules: problems of a run, each with evidence and remedy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HealthFinding:
    """Problem of a run: its name, the metrics that show it, and a remedy."""

    name: str
    evidence: str
    remedy: str
    is_grave: bool = False  # what was trained is not what was meant, or nothing was

    def __str__(self) -> str:
        return f"{self.name}: {self.evidence}; {self.remedy}"
