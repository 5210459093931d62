"""Majority-vote reward without labels (MM-UPT, 2505.22453): the group's most frequent answer counts as right.

The release counts votes on raw text, lets completions without an answer vote, and breaks ties by order. Read here:
answers are normalized before the vote, a completion without one (or truncated) neither votes nor earns, and a tie gives
no label.

Papers: mm-upt
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.data.lookup import env_of
from strop.roles import Environment, Reward
from strop.types import Group, Outcome, Rollout, ScoreRange
from strop.workers.foreign_checks import answered


@dataclass(frozen=True)
class Majority(Reward):
    """1 for the most frequent answer of the group, else 0; 0 for all on a tie."""

    envs: tuple[Environment, ...]
    weight: float = 1.0

    grades: ClassVar[ScoreRange | None] = ScoreRange()
    is_relative: ClassVar[bool] = True

    @property
    def is_inline(self) -> bool:
        return all(env.is_inline for env in self.envs)

    def __call__(self, group: Group) -> list[float]:
        env = env_of(self.envs, group.task)
        given = [_answer(env, rollout) for rollout in group.rollouts]
        label = most_frequent([answer for answer in given if answer])
        return [float(bool(label) and answer == label) for answer in given]


def most_frequent(answers: Sequence[str]) -> str:
    """The answer with the most votes; empty where there is none, or two have equally many."""
    ranked = Counter(answers).most_common(2)
    is_tied = len(ranked) == 2 and ranked[0][1] == ranked[1][1]
    return ranked[0][0] if ranked and not is_tied else ""


def _answer(env: Environment, rollout: Rollout) -> str:
    """Empty where there is none; what was cut off might have gone on."""
    return answered(env, rollout.completion) if rollout.outcome is Outcome.FINISHED else ""
