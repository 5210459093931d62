"""RLTF's feedback (2307.04349) of several grains: what a program failed of, how many tests it passed, and where.

Papers: rltf
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from strop.environments.code_execution import Trials, cases_of, program_in
from strop.filter.feedback import FEEDBACK, blamed, coarse
from strop.filter.judges.batch_ask import all_of
from strop.filter.paid_text import Paid, Span
from strop.roles import Reward
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class UnitTestFeedback(Reward):
    """A number for the program at its end (`feedback.coarse`), and `fine` at each token of what is to blame."""

    is_adaptive: bool = True  # the share of tests passed raises a wrong program
    fine: float = -0.3  # at each token of the line that an error is in, or of all where it is everywhere
    trials: Trials = field(default_factory=Trials)
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # it waits, and the box does the work

    async def __call__(self, group: Group) -> list[Paid]:
        return await all_of(self._mark(attempt) for attempt in group.trajectories)

    async def _mark(self, attempt: Trajectory) -> Paid:
        trial = await self.trials.of(attempt.reply, cases_of(attempt.task))
        told = coarse(trial, self.is_adaptive)
        attempt.facts |= {FEEDBACK: told, **trial.facts}
        place = blamed(trial, program_in(attempt.reply), attempt.reply)
        if place is None or place[0] == place[1] or not self.fine:
            return Paid(told)
        return Paid(told, (Span(len(attempt.turns) - 1, *place, each=self.fine, name="blamed"),))
