"""Plan quality reward of PTA-GRPO (2510.01833): the mean success of a plan's rollouts.

Papers: pta-grpo
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.filter.reward_values import plain_scores
from strop.roles import Reward
from strop.types import Group, Rollout


@dataclass(frozen=True)
class PlanQuality(Reward):
    """Mean of reward `inner` over the rollouts that share the plan, itself included."""

    inner: Reward
    weight: float = 1.0  # of this reward beside others

    is_relative: ClassVar[bool] = True

    @property
    def is_inline(self) -> bool:
        return self.inner.is_inline

    def __call__(self, group: Group) -> list[float]:
        paid: dict[str, list[float]] = {}
        for rollout, score in zip(group.rollouts, plain_scores(self, self.inner, group), strict=True):
            paid.setdefault(_plan(rollout), []).append(score)
        means = {plan: sum(scores) / len(scores) for plan, scores in paid.items()}
        return [means[_plan(rollout)] for rollout in group.rollouts]


def _plan(rollout: Rollout) -> str:
    return rollout.parent or rollout.id
