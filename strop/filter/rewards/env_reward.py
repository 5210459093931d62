"""What the environment itself paid, added up over the turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.roles import Reward
from strop.types import Group


@dataclass(frozen=True)
class Earned(Reward):
    """The sum of a rollout's turn rewards; 0 where the environment paid nothing."""

    weight: float = 1.0  # of this reward beside others

    is_inline: ClassVar[bool] = True
    name: ClassVar[str] = "outcome"  # in ledgers and metrics: the environment's own word on a rollout

    def __call__(self, group: Group) -> list[float]:
        return [float(sum(rollout.turn_rewards)) for rollout in group.rollouts]
