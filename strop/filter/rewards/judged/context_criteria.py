"""CARMO's score (2410.21545): a judge names the criteria that fit this task, then scores each reply by all of them.

Only an abstract was found; read plainly, the score is the mean over criteria on one scale. Criteria come from the task
alone, so that all its replies are measured alike.
Papers: carmo
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.filter.judges.batch_ask import all_of
from strop.filter.judges.checklist_items import FACT
from strop.filter.judges.criteria import criteria_of, scores_of
from strop.roles import Adviser, Reward
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class ContextCriteria(Reward):
    """The mean of a reply's scores, from 0 to 1; where there are no criteria or not all scores, there is no reward."""

    writer: Adviser  # who names criteria
    judge: Adviser  # who scores replies by them
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # it waits, and its advisers do the work

    async def __call__(self, group: Group) -> list[float]:
        if not group.trajectories:
            return []
        criteria = await criteria_of(group.task, self.writer)
        return await all_of(self._mark(attempt, criteria) for attempt in group.trajectories)

    async def _mark(self, attempt: Trajectory, criteria: list[str]) -> float:
        scores = await scores_of(attempt, criteria, self.judge)
        attempt.facts |= {f"{FACT}{place}": score for place, score in enumerate(scores)}
        attempt.facts["criteria"] = float(len(criteria))
        return sum(scores) / len(scores)
