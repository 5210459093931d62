"""Critique-Coder's pay (2509.22824): programs for the tests that they pass, critiques for a conclusion that is true.

Papers: critique-coder
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import isawaitable
from typing import ClassVar

from strop.environments.bundled.critiques import Critiques
from strop.filter.paid_text import Paid
from strop.roles import Reward
from strop.types import Group

FACT = "judged"  # whether a conclusion was true


@dataclass(frozen=True)
class SolvedOrJudged(Reward):
    """What the world paid for a critique; for all else what `tests` say."""

    tests: Reward  # of programs
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # it waits, and the box does the work

    async def __call__(self, group: Group) -> Sequence[float | Paid]:
        if group.task.source != Critiques.name:
            told = self.tests(group)
            return await told if isawaitable(told) else told
        for attempt in group.trajectories:
            attempt.facts[FACT] = sum(attempt.turn_rewards)
        return [attempt.facts[FACT] for attempt in group.trajectories]
