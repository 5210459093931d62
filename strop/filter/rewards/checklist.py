"""Checklists as a reward (RLCF, 2507.18624): an adviser writes what replies to a task must do, and judges each item.

An answer without a number is no score (the release weighs it as -1), and a verifier that fails is none.

Papers: rlcf
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from strop.errors import AdviserError, ConfigurationError
from strop.filter.judges.batch_ask import NUMBER, all_of, key_of, text_of, verdict, verdict_or_none
from strop.filter.judges.checklist_items import EVERYWHERE, FACT, JUDGED, WANTED, Item, items_in, score_in
from strop.roles import Adviser, Reward
from strop.text.llm_prompt import judgement, question
from strop.types import Group, Message, Sampling, Task, Trajectory


@dataclass(frozen=True)
class Checklist(Reward):
    """sum(w * s) / (100 * sum(w)) over the items of the task's checklist and one for all tasks, of importance 100.

    s is the mean of what the judge says in `samples` answers; where the verifier says something of the item, the mean
    of that and the verifier's 0 or 100. An item without a score is left out; an attempt without any has no reward.
    """

    writer: Adviser  # who writes checklists
    judge: Adviser  # who says how well a reply meets an item
    verifier: Adviser | None = None  # who can check some items exactly, and says nothing of the others
    samples: int = 25  # answers of the judge to each question
    sampling: Sampling = field(default_factory=lambda: Sampling(temperature=1.3, top_p=0.9, max_tokens=16))
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # it waits, and its advisers do the work

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ConfigurationError(f"Checklist needs samples >= 1, got {self.samples}")

    async def __call__(self, group: Group) -> list[float]:
        if not group.trajectories:
            return []
        items = await self._items(group.task)
        return await all_of(self._mark(attempt, items) for attempt in group.trajectories)

    async def _items(self, task: Task) -> list[Item]:
        """The same list for all attempts."""
        asked = question(WANTED, task=text_of(task))
        items = items_in(await self.writer.ask([Message("user", asked)], Sampling(temperature=0.0), key_of(asked)))
        if not items:
            raise AdviserError(f"there is no item with an importance in the checklist for task {task.id}")
        return [*items, EVERYWHERE]

    async def _mark(self, attempt: Trajectory, items: Sequence[Item]) -> float:
        scores = await all_of(self._score(attempt, item) for item in items)
        known = [(place, score) for place, score in enumerate(scores) if score is not None]
        attempt.facts |= {f"{FACT}{place}": score / 100 for place, score in known}
        total = sum(items[place].weight for place, _ in known)
        return sum(items[place].weight * score for place, score in known) / (100 * total) if known else math.nan

    async def _score(self, attempt: Trajectory, item: Item) -> float | None:
        asked = judgement(JUDGED, task=text_of(attempt.task), reply=attempt.reply, requirement=item.text)
        judged = [score_in(answer) for answer in await all_of(self._answers(asked))]
        said = [score for score in judged if score is not None]
        found = [sum(said) / len(said)] if said else []
        verified = await self._verified(asked)
        found += [] if verified is None else [verified]
        return sum(found) / len(found) if found else None

    def _answers(self, asked: str) -> list[Awaitable[str]]:
        return [
            verdict_or_none(self.judge, asked, NUMBER, self.sampling, key_of(f"{asked}/{number}"))
            for number in range(self.samples)
        ]

    async def _verified(self, asked: str) -> float | None:
        if self.verifier is None:
            return None
        try:
            answer = await verdict(self.verifier, asked, NUMBER, Sampling(temperature=0.0))
        except AdviserError:
            return None
        return score_in(answer)
