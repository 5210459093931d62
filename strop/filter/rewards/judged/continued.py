"""RLPT's reward (2509.19249): a judge says whether a prediction is, in meaning, how the text goes on.

Papers: rlpt
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.think_tags import final_answer
from strop.filter.judges.batch_ask import YES_OR_NO, all_of, verdict
from strop.filter.judges.rubric import is_met
from strop.roles import Adviser, Reward
from strop.text.llm_prompt import judgement
from strop.types import Group, Trajectory

ASKED = "Does what the reply says come next in the text, or begin what comes next? Answer with yes or no."


@dataclass(frozen=True)
class Continued(Reward):
    """1 where the judge says yes, 0 where it says no or the prediction is empty; what it leaves open is no reward.

    The judge reads the next sentence on one line and all that follows on another: a prediction may go on further. For
    tasks of `NextSegment`.
    """

    judge: Adviser
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # it waits, and its adviser does the work

    async def __call__(self, group: Group) -> list[float]:
        return await all_of(self._mark(attempt) for attempt in group.trajectories)

    async def _mark(self, attempt: Trajectory) -> float:
        predicted = final_answer(attempt.reply)
        if not predicted:
            return 0.0
        secret = json.loads(attempt.task.answer)
        asked = judgement(ASKED, answer=f"{secret['next']}\n{secret['after']}", reply=predicted)
        is_next = is_met(await verdict(self.judge, asked, YES_OR_NO))
        return math.nan if is_next is None else float(is_next)
