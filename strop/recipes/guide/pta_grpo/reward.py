"""Plan quality reward of PTA-GRPO (2510.01833): the mean success of a plan's rollouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strop.filter.reward_values import RewardScores, shaped
from strop.filter.rewards.around import AroundReward
from strop.types import Group, Rollout


@dataclass(frozen=True)
class PlanQuality(AroundReward):
    """Mean of reward `inner` over the rollouts that share the plan, itself included."""

    def __call__(self, group: Group) -> RewardScores:
        return shaped(self, group, lambda scores: _means(group.rollouts, scores), self.inner)


def _means(rollouts: Sequence[Rollout], scores: Sequence[float]) -> list[float]:
    paid: dict[str, list[float]] = {}
    for rollout, score in zip(rollouts, scores, strict=True):
        paid.setdefault(_plan(rollout), []).append(score)
    means = {plan: sum(known) / len(known) for plan, known in paid.items()}
    return [means[_plan(rollout)] for rollout in rollouts]


def _plan(rollout: Rollout) -> str:
    return rollout.parent or rollout.id
