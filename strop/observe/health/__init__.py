"""What may be wrong with a run: one rule per file, each with its evidence and what helps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HealthFinding:
    """One thing that is wrong: its name, the metrics that show it, and what helps."""

    name: str
    evidence: str
    remedy: str
    is_grave: bool = False  # what was trained is not what was meant, or nothing was

    def __str__(self) -> str:
        return f"{self.name}: {self.evidence}; {self.remedy}"
