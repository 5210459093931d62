"""RAG-RL's pay for citations (2503.12759): for the share of gold passages quoted, less a price for each other one.

Reading: the paper also pays for a right format; here that is a working and a number behind it, worth `form`.
Papers: rag-rl
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.bundled.passages import Passages, cited
from strop.environments.format.think_tags import CLOSE, final_number
from strop.roles import Reward
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class Citations(Reward):
    """recall * (gold quoted / gold) - price * (others quoted) + form; in tasks of `Passages`, nothing elsewhere."""

    recall: float = 5.0  # for all gold passages
    price: float = 2.0  # of each passage that leads nowhere
    form: float = 1.0  # for a working and a number
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [self._paid(attempt) if group.task.source == Passages.name else 0.0 for attempt in group.trajectories]

    def _paid(self, attempt: Trajectory) -> float:
        found = cited(attempt.task, attempt.reply)
        is_formed = CLOSE in attempt.reply and final_number(attempt.reply) != ""
        return self.recall * found.gold / found.of - self.price * found.wrong + self.form * is_formed
