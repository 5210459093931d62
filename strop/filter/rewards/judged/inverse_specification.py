"""Inverse specification (2603.16839): who sees the work alone guesses what it was asked to be; the closer, the better.

Papers: inverse-spec
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.filter.briefs import GUESSED, TOLD, Commission, agreement, brief_of
from strop.filter.judges.batch_ask import all_of, text_of
from strop.roles import Adviser, Reward
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class InverseSpecification(Reward):
    """0.40 topic + 0.25 audience + 0.15 size + 0.20 themes, each from 0 to 1; a guess that says nothing is none.

    The guesser is shown the last reply and nothing of the task; a reply without a word earns 0.
    """

    writer: Adviser  # who says what the task asks for
    guesser: Adviser  # who guesses it from the reply alone
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # it waits, and its advisers do the work

    async def __call__(self, group: Group) -> list[float]:
        if not group.trajectories:
            return []
        true = await brief_of(self.writer, TOLD, task=text_of(group.task))
        return await all_of(self._mark(attempt, true) for attempt in group.trajectories)

    async def _mark(self, attempt: Trajectory, true: Commission) -> float:
        if not attempt.reply.strip():
            return 0.0
        return agreement(true, await brief_of(self.guesser, GUESSED, reply=attempt.reply))
