"""A price for every turn that the environment refused to carry out (SLEA-RL, 2603.18079).

Papers: slea-rl
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.roles import Reward
from strop.types import Group, Rollout


@dataclass(frozen=True)
class Refused(Reward):
    """-price for each answer of the environment that begins with `refusal`; what it said to the last turn nobody
    knows.
    """

    price: float = 0.1
    refusal: str = "error"  # how an answer begins that refuses a turn
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [-self.price * self._count(rollout) for rollout in group.rollouts]

    def _count(self, rollout: Rollout) -> int:
        return sum(message.content.startswith(self.refusal) for turn in rollout.turns for message in turn.told)
