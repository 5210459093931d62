"""RuscaRL's reward (2508.16949): points of the rubric's items that a reply meets, over all that could be earned.

Reading: a verdict that is neither yes nor no is none; an attempt with an item that nobody judged has no reward.
Papers: ruscarl
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from strop.filter.judges.batch_ask import YES_OR_NO, all_of, text_of, verdict
from strop.filter.judges.checklist_items import FACT, Item
from strop.filter.judges.rubric import JUDGED, is_met, rubric_of
from strop.roles import Adviser, Reward
from strop.text.llm_prompt import judgement
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class RubricPoints(Reward):
    """sum(points of items that are met) / sum(positive points): at most 1, and below 0 for what must not be done."""

    writer: Adviser  # who writes rubrics
    judge: Adviser  # who says whether a reply meets an item
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # it waits, and its advisers do the work

    async def __call__(self, group: Group) -> list[float]:
        if not group.trajectories:
            return []
        items = await rubric_of(group.task, self.writer)
        return await all_of(self._mark(attempt, items) for attempt in group.trajectories)

    async def _mark(self, attempt: Trajectory, items: list[Item]) -> float:
        verdicts = await all_of(self._verdict(attempt, item) for item in items)
        attempt.facts |= {f"{FACT}{place}": float(met) for place, met in enumerate(verdicts) if met is not None}
        if any(met is None for met in verdicts):
            return math.nan
        earned = sum(item.weight for item, met in zip(items, verdicts, strict=True) if met)
        return earned / sum(item.weight for item in items if item.weight > 0)

    async def _verdict(self, attempt: Trajectory, item: Item) -> bool | None:
        asked = judgement(JUDGED, task=text_of(attempt.task), reply=attempt.reply, requirement=item.text)
        return is_met(await verdict(self.judge, asked, YES_OR_NO))
