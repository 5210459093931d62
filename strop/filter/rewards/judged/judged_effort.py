"""RLSP's reward for search (2502.06773): a judge grades effort and originality, whether or not the answer is right.

The release pays 0.5 where its judge fails; here such an attempt has no reward, as with every other judge.
Papers: rlsp
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from strop.filter.judges.batch_ask import NUMBER, all_of, text_of, verdict
from strop.filter.judges.checklist_items import score_in
from strop.roles import Adviser, Reward
from strop.text.llm_prompt import judgement
from strop.types import Group, Trajectory

ASKED = (
    "How much effort and originality does the reply show in its search for an answer, from 0 (none) to 100? It does "
    "not matter whether it is right. Answer with the number."
)


@dataclass(frozen=True)
class JudgedEffort(Reward):
    """What the judge says of each attempt, from 0 to 1; an answer without a number is no reward."""

    judge: Adviser
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # it waits, and its adviser does the work

    async def __call__(self, group: Group) -> list[float]:
        return await all_of(self._mark(attempt) for attempt in group.trajectories)

    async def _mark(self, attempt: Trajectory) -> float:
        asked = judgement(ASKED, task=text_of(attempt.task), reply=attempt.reply)
        score = score_in(await verdict(self.judge, asked, NUMBER))
        return math.nan if score is None else score / 100
