"""Restart reward of Satori (2502.02508): outcome reward, plus for a corrected wrong prefix, less for a spoiled right
one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.filter.reward_values import RewardScores, shaped
from strop.roles import Reward
from strop.success import is_right
from strop.types import Group, Rollout

RESTART = "restart"  # fact: prefix of a rollout: 1 from a right rollout, -1 from a wrong one, 0 none


@dataclass(frozen=True)
class RestartBonus(Reward):
    """0 if right by `judge`, else -1; plus `bonus` if a restarted wrong rollout ends right, minus if a right
    one ends wrong.
    """

    judge: Reward
    bonus: float = 0.5
    weight: float = 1.0

    needs_success: ClassVar[bool] = True

    @property
    def is_inline(self) -> bool:
        return self.judge.is_inline

    def __call__(self, group: Group) -> RewardScores:
        return shaped(self, group, lambda _: [self._score(each, is_right(each)) for each in group.rollouts], self.judge)

    def _score(self, rollout: Rollout, is_right: bool) -> float:
        began = rollout.facts.get(RESTART, 0.0)
        if is_right:
            return self.bonus if began < 0 else 0.0
        return -1.0 - (self.bonus if began > 0 else 0.0)
