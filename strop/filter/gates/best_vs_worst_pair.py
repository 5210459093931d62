"""One preference pair per group, as in best-versus-worst DPO: the highest reward against the lowest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from strop.roles import Gate
from strop.types import Group, Verdict


@dataclass(frozen=True)
class BestAndWorst(Gate):
    """Trim a group to [best, worst], the first of equals each; drop it where there is nothing to prefer."""

    min_group: ClassVar[int] = 2

    def __call__(self, group: Group) -> Verdict:
        if not group.scored:
            return Verdict(None, "no attempt counts")
        best = max(group.scored, key=lambda attempt: attempt.reward)
        worst = min(group.scored, key=lambda attempt: attempt.reward)
        if best.reward == worst.reward:
            return Verdict(None, f"all rewards are {best.reward:g}")
        return Verdict(replace(group, trajectories=[best, worst]), "kept the best and the worst")
