"""Rewards that are credit already: nothing is taken off and nothing divided.

Papers: think-rm
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.roles import Advantage
from strop.types import Group


@dataclass(frozen=True)
class Given(Advantage):
    """A = the attempt's reward, at each of its tokens."""

    is_local: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            for attempt in group.scored:
                attempt.credit(attempt.reward)
