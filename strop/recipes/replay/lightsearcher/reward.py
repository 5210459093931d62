"""Tool-efficiency reward of LightSearcher (2512.06653): half for a right answer, half for few tool calls.

The strategy records the fewest calls of a success of the task as a fact of every rollout before scoring. Readings: the
environment's own reward replaces the F1 of an answer; a rollout whose last completion has no answer counts as
ill-formed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.think_tags import final_answer
from strop.environments.needs import TURNS, EnvNeed
from strop.filter.reward_values import RewardScores, shaped
from strop.roles import Reward
from strop.success import success
from strop.types import Group, Rollout

LEAST = "least_calls"  # the fact of how few calls any earlier success at the task has made; missing: there was none
RIGHT = 0.8  # judgement of a rollout that is right enough


def calls_of(rollout: Rollout) -> int:
    """How many tool calls were answered."""
    return sum(message.role == "tool" for turn in rollout.turns for message in turn.told)


@dataclass(frozen=True)
class FewestCalls(Reward):
    """-1 without an answer; else inner / 2 + T / 2, with T = exp(-price * calls beyond the fewest) for right
    answers.
    """

    inner: Reward
    price: float = 0.75  # of a call beyond the fewest, in the exponent
    weight: float = 1.0

    is_relative: ClassVar[bool] = False
    needs_success: ClassVar[bool] = True
    env_needs: ClassVar[tuple[EnvNeed, ...]] = (TURNS,)

    @property
    def is_inline(self) -> bool:
        return self.inner.is_inline

    def __call__(self, group: Group) -> RewardScores:
        return shaped(self, group, lambda _: [self._score(rollout) for rollout in group.rollouts], self.inner)

    def _score(self, rollout: Rollout) -> float:
        if not final_answer(rollout.completion):
            return -1.0
        right = success(rollout)
        beyond = max(0.0, calls_of(rollout) - rollout.facts.get(LEAST, math.inf))
        return right / 2 + (math.exp(-self.price * beyond) / 2 if right >= RIGHT else 0.0)
