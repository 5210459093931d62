"""Pairwise reward (2504.04950): the probability that a rollout beats the task's reference answer.

The sources give no formula; read plainly, the reward is the win probability, averaged over both orders to cancel a
judge's position bias, minus one half.

Papers: pairwise-rl
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from strop.roles import Reward
from strop.types import Group, Task


class Judge(Protocol):
    """Pairwise judge: the probability that the first completion is better."""

    def first_wins(self, task: Task, first: str, second: str) -> float:
        """The probability that the first of two completions is the better one, from 0 to 1."""
        ...


@dataclass(frozen=True)
class Pairwise(Reward):
    """(P(rollout, anchor) + 1 - P(anchor, rollout)) / 2 - 1/2, from -1/2 to 1/2; 0 for the anchor itself.

    The anchor is the task's answer, which the policy never sees. Rewards of different tasks are not comparable.
    """

    judge: Judge
    weight: float = 1.0

    is_inline: ClassVar[bool] = False

    def __call__(self, group: Group) -> list[float]:
        anchor = group.task.answer
        return [self._share(group.task, rollout.completion, anchor) - 0.5 for rollout in group.rollouts]

    def _share(self, task: Task, completion: str, anchor: str) -> float:
        one, other = self.judge.first_wins(task, completion, anchor), self.judge.first_wins(task, anchor, completion)
        return (one + 1 - other) / 2
