"""RLOO's advantage (Kool et al., 2019; Ahmadian et al., 2402.14740): each rollout against the mean of the others.

Papers: rloo
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.roles import Advantage
from strop.types import Group


@dataclass(frozen=True)
class LeaveOneOut(Advantage):
    """A = r - mean of the siblings: unbiased. A rollout without a sibling that counts has no baseline and gets 0."""

    min_group: ClassVar[int] = 2
    is_local: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            rewards = group.rewards - group.rewards[:1]  # [G]; equal ones give exactly 0
            factor = len(rewards) / max(len(rewards) - 1, 1)  # r - others' mean = G / (G - 1) * (r - mean)
            for rollout, reward in zip(group.scored, rewards, strict=True):
                rollout.set_advantage(float(factor * (reward - rewards.mean())))
