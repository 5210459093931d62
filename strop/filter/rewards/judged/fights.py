"""Who wins a fight (2407.10627): a judge compares both replies in both orders; where it splits, nobody does.

Papers: arena-learning
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import ClassVar

from strop.errors import AdviserError
from strop.filter.judges.pairwise_criteria import compared
from strop.roles import Adviser, Reward
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class Fights(Reward):
    """1 for the winner, 0 for the loser, 1/2 each for a tie; families of two fight, and others have no reward."""

    judge: Adviser  # who compares two replies
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # it waits, and its judge does the work
    is_relative: ClassVar[bool] = True

    async def __call__(self, group: Group) -> list[float]:
        families: dict[str, list[Trajectory]] = {}
        for attempt in group.trajectories:
            families.setdefault(attempt.family, []).append(attempt)
        pairs = [both for both in families.values() if len(both) == 2]
        found = await asyncio.gather(*(self._share(*both) for both in pairs), return_exceptions=True)
        errors = [each for each in found if isinstance(each, BaseException)]
        other = [each for each in errors if not isinstance(each, AdviserError)]
        if other or (errors and len(errors) == len(found)):
            raise (other or errors)[0]
        marks = {attempt.id: math.nan for attempt in group.trajectories}
        for (first, second), share in zip(pairs, found, strict=True):
            if not isinstance(share, BaseException):
                marks |= {first.id: share, second.id: 1 - share}
        return [marks[attempt.id] for attempt in group.trajectories]

    async def _share(self, first: Trajectory, second: Trajectory) -> float:
        return 0.5 if first.reply == second.reply else await compared(first.task, first.reply, second.reply, self.judge)
