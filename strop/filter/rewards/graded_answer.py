"""Concise reasoning's reward (2504.05185): a wrong answer is better than none, and there is no word about length.

Papers: concise-reasoning
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.scratchpad import final_answer
from strop.roles import Reward
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class GradedAnswer(Reward):
    """`right` where the world paid at least 1, else `wrong`, or `missing` where the last reply holds no answer."""

    right: float = 1.0
    wrong: float = -0.5
    missing: float = -1.0
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [self._grade(attempt) for attempt in group.trajectories]

    def _grade(self, attempt: Trajectory) -> float:
        if sum(attempt.turn_rewards) >= 1.0 - 1e-9:
            return self.right
        return self.wrong if final_answer(attempt.reply) else self.missing
