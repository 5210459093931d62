"""LightSearcher's reward (2512.06653): half for being right, half for no more tool calls than a success has needed.

What has been needed is known to the strategy, which notes it on every rollout of a group before any is scored.
Readings: the environment's own judgement stands for the F1 of an answer; a rollout whose last completion gives no
answer is of bad form.
Papers: lightsearcher
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.think_tags import final_answer
from strop.filter.calls import LEAST, RIGHT, calls_of
from strop.filter.reward_values import plain_scores
from strop.roles import Reward
from strop.types import Group, Rollout


@dataclass(frozen=True)
class FewestCalls(Reward):
    """-1 without an answer; else inner / 2 + T / 2, with T = exp(-price * calls beyond the fewest) where right."""

    inner: Reward
    price: float = 0.75  # of a call beyond the fewest, in the exponent
    weight: float = 1.0

    is_relative: ClassVar[bool] = False

    @property
    def is_inline(self) -> bool:
        return self.inner.is_inline

    def __call__(self, group: Group) -> list[float]:
        scores = plain_scores(self, self.inner, group)
        return [self._score(rollout, score) for rollout, score in zip(group.rollouts, scores, strict=True)]

    def _score(self, rollout: Rollout, right: float) -> float:
        if not final_answer(rollout.completion):
            return -1.0
        beyond = max(0.0, calls_of(rollout) - rollout.facts.get(LEAST, math.inf))
        return right / 2 + (math.exp(-self.price * beyond) / 2 if right >= RIGHT else 0.0)
