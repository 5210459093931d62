"""PTA-GRPO's pay for plans (2510.01833): how often the attempts of a plan are right.

Papers: pta-grpo
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.filter.reward_values import plain_marks
from strop.roles import Reward
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class PlanQuality(Reward):
    """The mean of what `inner` says of the attempts that go on from the same first one, itself among them."""

    inner: Reward
    weight: float = 1.0  # of this reward beside others

    is_relative: ClassVar[bool] = True

    @property
    def is_inline(self) -> bool:
        return self.inner.is_inline

    def __call__(self, group: Group) -> list[float]:
        paid: dict[str, list[float]] = {}
        for attempt, mark in zip(group.trajectories, plain_marks(self, self.inner, group), strict=True):
            paid.setdefault(_plan(attempt), []).append(mark)
        means = {plan: sum(marks) / len(marks) for plan, marks in paid.items()}
        return [means[_plan(attempt)] for attempt in group.trajectories]


def _plan(attempt: Trajectory) -> str:
    return attempt.parent or attempt.id
