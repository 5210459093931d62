"""GVL's choice of data (2411.04549): attempts whose foretold progress rises with time.

Papers: gvl
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from strop.errors import ConfigurationError
from strop.filter.judges.progress_frames import ORDER
from strop.roles import Gate
from strop.types import Group, Verdict


@dataclass(frozen=True)
class Ordered(Gate):
    """Keep attempts whose value-order correlation is at least `least`; those that were never judged leave, too."""

    least: float = 0.5  # from -1 to 1

    def __post_init__(self) -> None:
        if not -1 <= self.least <= 1:
            raise ConfigurationError(f"Ordered needs least from -1 to 1, got {self.least}")

    def __call__(self, group: Group) -> Verdict:
        kept = [attempt for attempt in group.scored if attempt.facts.get(ORDER, -2.0) >= self.least]
        if not kept:
            return Verdict(None, f"no attempt has a value-order correlation of {self.least:g} or more")
        return Verdict(replace(group, trajectories=kept), f"kept {len(kept)} attempts that made progress")
