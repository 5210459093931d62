"""LightSearcher's reward (2512.06653): half for being right, half for no more tool calls than a success has needed.

What has been needed is known to the strategy, which notes it on every attempt of a group before any is scored.
Readings: the world's own judgement stands for the F1 of an answer; an attempt whose last reply gives no answer is of
bad form.
Papers: lightsearcher
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.think_tags import final_answer
from strop.filter.calls import LEAST, RIGHT, calls_of
from strop.filter.reward_values import plain_marks
from strop.roles import Reward
from strop.types import Group, Trajectory


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
        marks = plain_marks(self, self.inner, group)
        return [self._mark(attempt, mark) for attempt, mark in zip(group.trajectories, marks, strict=True)]

    def _mark(self, attempt: Trajectory, right: float) -> float:
        if not final_answer(attempt.reply):
            return -1.0
        beyond = max(0.0, calls_of(attempt) - attempt.facts.get(LEAST, math.inf))
        return right / 2 + (math.exp(-self.price * beyond) / 2 if right >= RIGHT else 0.0)
