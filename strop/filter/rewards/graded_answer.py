"""Three-level outcome reward (2504.05185, 2503.12854): right, wrong, or no answer; length does not count.

Papers: concise-reasoning, iterative-dpo
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.think_tags import final_answer
from strop.filter.reward_values import RewardScores, shaped
from strop.roles import Reward
from strop.success import is_right
from strop.types import Group, Outcome, Rollout


@dataclass(frozen=True)
class GradedAnswer(Reward):
    """`right` if `judge` says so, else `wrong`; `missing` if the completion is truncated or has no answer."""

    judge: Reward
    right: float = 1.0  # for a right answer
    wrong: float = -0.5  # for a wrong one
    missing: float = -1.0  # for none
    weight: float = 1.0

    needs_success: ClassVar[bool] = True

    @property
    def is_inline(self) -> bool:
        return self.judge.is_inline

    def __call__(self, group: Group) -> RewardScores:
        return shaped(self, group, lambda _: [self._grade(rollout) for rollout in group.rollouts], self.judge)

    def _grade(self, rollout: Rollout) -> float:
        if is_right(rollout):
            return self.right
        has_answer = rollout.outcome is Outcome.FINISHED and bool(final_answer(rollout.completion))
        return self.wrong if has_answer else self.missing
