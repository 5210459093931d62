"""Dynamic sampling by family: of a group with several sets of siblings those stay that have contrast.

Guide (2506.13923) drops tasks that are all right, and hinted attempts that are all right or all wrong.
Papers: guide
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from strop.roles import Gate
from strop.types import Group, Verdict

_ROUNDING = 1e-9  # of weighted sums


@dataclass(frozen=True)
class ContrastInFamily(Gate):
    """Keep families whose rewards differ; a group without such a one is dropped. With one family: ZeroVariance."""

    min_group: ClassVar[int] = 2

    def __call__(self, group: Group) -> Verdict:
        rewards: dict[str, list[float]] = {}
        for attempt in group.scored:
            rewards.setdefault(attempt.family, []).append(attempt.reward)
        flat = {family for family, paid in rewards.items() if max(paid) - min(paid) <= _ROUNDING}
        kept = [attempt for attempt in group.scored if attempt.family not in flat]
        if not kept:
            return Verdict(None, f"no contrast within any of {len(rewards)} families")
        return Verdict(replace(group, trajectories=kept) if flat else group)
