"""Arena Learning's data (2407.10627): the fights that the policy lost, and nothing else.

Papers: arena-learning
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from strop.roles import Gate
from strop.types import Group, Origin, Trajectory, Verdict

_ROUNDING = 1e-9


@dataclass(frozen=True)
class LostFights(Gate):
    """Keep families of two in which the rival beat the policy: both, the winner first, or the winner alone."""

    winner_only: bool = False  # for imitation

    def __call__(self, group: Group) -> Verdict:
        families: dict[str, list[Trajectory]] = {}
        for attempt in group.scored:
            families.setdefault(attempt.family, []).append(attempt)
        lost = [both for each in families.values() if (both := _lost(each))]
        if not lost:
            return Verdict(None, f"none of {len(families)} fights was lost")
        kept = [attempt for both in lost for attempt in (both[:1] if self.winner_only else both)]
        return Verdict(replace(group, trajectories=kept), f"lost {len(lost)} of {len(families)} fights")


def _lost(family: list[Trajectory]) -> list[Trajectory]:
    """The rival and the policy's attempt, where the first won; a tie is no loss."""
    rivals = [each for each in family if each.origin is Origin.TEACHER]
    own = [each for each in family if each.origin is not Origin.TEACHER]
    if len(rivals) != 1 or len(own) != 1 or rivals[0].reward <= own[0].reward + _ROUNDING:
        return []
    return [*rivals, *own]
