"""A negative control: every attempt gets the credit that the sibling after it has earned.

Sizes and signs of the credit stay what they were, group by group; which attempt they belong to is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.roles import Advantage
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class NextSibling(Advantage):
    """What `inner` gives, one place further around the group; the mean over its tokens, where they differ."""

    inner: Advantage

    min_group: ClassVar[int] = 2

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        for group in groups:
            given = [_mean(attempt) for attempt in group.scored]
            for attempt, credit in zip(group.scored, given[1:] + given[:1], strict=True):
                attempt.set_advantage(credit)


def _mean(attempt: Trajectory) -> float:
    credit = attempt.advantages
    return float(credit.mean()) if credit is not None and len(credit) else 0.0
