"""A stand-in for a model of preferences: it likes texts that say what the answer says, and nothing else.

It reads the whole text that it is shown, as a reward model does, so one that says more than the answer is liked less.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from strop.roles import Reward
from strop.types import Group


@dataclass(frozen=True)
class LikeAnswer(Reward):
    """Twice the letters that the last reply and the task's answer have in common, by all letters of both: 0 to 1."""

    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [likeness(attempt.reply, attempt.task.answer) for attempt in group.trajectories]


def likeness(one: str, other: str) -> float:
    """Order does not count, blanks at the ends neither."""
    first, second = Counter(one.strip()), Counter(other.strip())
    return 2 * (first & second).total() / max(first.total() + second.total(), 1)
