"""Let go of attempts that only served to compare with.

Papers: par
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from strop.roles import Gate
from strop.types import Group, Origin, Verdict


@dataclass(frozen=True)
class OwnOnly(Gate):
    """All attempts but those of origin TEACHER."""

    def __call__(self, group: Group) -> Verdict:
        kept = [attempt for attempt in group.scored if attempt.origin is not Origin.TEACHER]
        if not kept:
            return Verdict(None, f"none of {len(group.scored)} attempts is the policy's own")
        reason = f"{len(kept)} of {len(group.scored)} attempts are the policy's own"
        return Verdict(replace(group, trajectories=kept), reason)
