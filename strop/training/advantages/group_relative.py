"""Group-relative advantages: mean, standardized (GRPO), leave-one-out (RLOO), maximum likelihood, next sibling.

Papers: dr-grpo, grpo, maxrl, rloo
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.roles import Advantage
from strop.success import success
from strop.types import Group, Rollout

# Dr. GRPO's advantage (Liu et al., 2503.20783): each rollout against the mean of its group, without the division.


@dataclass(frozen=True)
class GroupMean(Advantage):
    """A = r - mean. The mean includes the rollout itself: the expected gradient is (G - 1) / G of the true one."""

    min_group: ClassVar[int] = 2
    is_local: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            rewards = group.rewards - group.rewards[:1]  # [G]; equal ones give exactly 0
            for rollout, reward in zip(group.scored, rewards, strict=True):
                rollout.set_advantage(float(reward - rewards.mean()))


# GRPO's advantage (Shao et al., 2402.03300): each rollout against its siblings, in units of their std.


@dataclass(frozen=True)
class GroupStandard(Advantage):
    """A = (r - mean) / (std + epsilon) within the group; std is the sample one (divided by G - 1).

    Dividing by the group's own std biases the gradient: tasks near 0 % or 100 % weigh more. A group with only one
    scored rollout gets 0.
    """

    epsilon: float = 1e-6  # keeps the divisor above 0

    min_group: ClassVar[int] = 2
    is_local: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            rewards = group.rewards
            rewards = rewards - rewards[:1]  # [G]; equal ones give exactly 0
            spread = rewards.std(ddof=1) if len(rewards) > 1 else 0.0
            if len(rewards):
                advantage = (rewards - rewards.mean()) / (spread + self.epsilon)  # [G]
                for rollout, each in zip(group.scored, advantage.tolist(), strict=True):
                    rollout.set_advantage(each)


# RLOO's advantage (Kool et al., 2019; Ahmadian et al., 2402.14740): each rollout against the mean of the others.


@dataclass(frozen=True)
class LeaveOneOut(Advantage):
    """A = r - mean of the siblings: unbiased. A rollout without a scored sibling has no baseline and gets 0."""

    min_group: ClassVar[int] = 2
    is_local: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            rewards = group.rewards - group.rewards[:1]  # [G]; equal ones give exactly 0
            factor = len(rewards) / max(len(rewards) - 1, 1)  # r - others' mean = G / (G - 1) * (r - mean)
            for rollout, reward in zip(group.scored, rewards, strict=True):
                rollout.set_advantage(float(factor * (reward - rewards.mean())))


# MaxRL's advantage (2602.02710): divided by the success rate, which makes the log of it the objective.


@dataclass(frozen=True)
class MaximumLikelihood(Advantage):
    """A = (s - mean) / mean in the group, 0 where nothing succeeded; s is how right a rollout is, from 0 to 1.

    The expected gradient is that of the first G - 1 terms of log p = -sum_k (1 - p)^k / k, p the success rate.
    """

    min_group: ClassVar[int] = 2
    needs_success: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            right = np.array([success(rollout) for rollout in group.scored], dtype=np.float64)
            mean = float(right.mean()) if len(right) else 0.0
            for rollout, value in zip(group.scored, right, strict=True):
                rollout.set_advantage(float((value - mean) / mean) if mean > 0 else 0.0)


# Negative control: every rollout gets the advantage of the sibling after it.
#
# Sizes and signs of the advantages stay the same per group; only the assignment to rollouts is lost.


@dataclass(frozen=True)
class NextSibling(Advantage):
    """`inner`'s advantages shifted by one sibling; the mean over tokens where they differ."""

    inner: Advantage

    min_group: ClassVar[int] = 2

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        for group in groups:
            given = [_mean(rollout) for rollout in group.scored]
            for rollout, advantage in zip(group.scored, given[1:] + given[:1], strict=True):
                rollout.set_advantage(advantage)


def _mean(rollout: Rollout) -> float:
    advantage = rollout.advantages
    return float(advantage.mean()) if advantage is not None and len(advantage) else 0.0
