"""Preference pair of a group for DPO: the rollouts of highest and lowest reward."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from strop.roles import Gate
from strop.types import GateResult, Group


@dataclass(frozen=True)
class BestAndWorst(Gate):
    """Gate that trims a group to [best, worst], ties to the first; a group with equal rewards is dropped."""

    min_group: ClassVar[int] = 2

    def __call__(self, group: Group) -> GateResult:
        if not group.scored:
            return GateResult(None, "no rollout counts")
        best = max(group.scored, key=lambda rollout: rollout.reward)
        worst = min(group.scored, key=lambda rollout: rollout.reward)
        if best.reward == worst.reward:
            return GateResult(None, f"all rewards are {best.reward:g}")
        return GateResult(replace(group, rollouts=[best, worst]), "kept the best and the worst")
