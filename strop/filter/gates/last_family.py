"""Of several waves only the last is trained on: a group that was tried anew replaces the one that failed (GHPO).

Papers: ghpo
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from strop.roles import Gate
from strop.types import Group, Verdict


@dataclass(frozen=True)
class LastFamily(Gate):
    """Keep the attempts that are of the family of the last one."""

    def __call__(self, group: Group) -> Verdict:
        last = group.trajectories[-1].family
        kept = [attempt for attempt in group.trajectories if attempt.family == last]
        return Verdict(replace(group, trajectories=kept) if len(kept) < len(group.trajectories) else group)
