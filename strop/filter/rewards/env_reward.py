"""What the world itself paid, added up over the turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.roles import Reward
from strop.types import Group


@dataclass(frozen=True)
class Earned(Reward):
    """The sum of an attempt's turn rewards; 0 where the world paid nothing."""

    weight: float = 1.0  # of this reward beside others

    is_inline: ClassVar[bool] = True
    name: ClassVar[str] = "outcome"  # in ledgers and figures: the world's own word on an attempt

    def __call__(self, group: Group) -> list[float]:
        return [float(sum(attempt.turn_rewards)) for attempt in group.trajectories]
