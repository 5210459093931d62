"""A little for every turn that the environment carried out: steps that are right in form, whatever comes of them.

Papers: g-ra
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.roles import Reward
from strop.types import Group, Rollout


@dataclass(frozen=True)
class CarriedOut(Reward):
    """`bonus` for each turn that a tool answered without refusing; what it said to the last turn nobody knows."""

    bonus: float = 0.1  # of one turn
    refusal: str = "error"  # how an answer begins that refuses a turn
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [self.bonus * self._count(rollout) for rollout in group.rollouts]

    def _count(self, rollout: Rollout) -> int:
        heard = [[message for message in turn.told if message.role == "tool"] for turn in rollout.turns]
        return sum(bool(own) and not any(m.content.startswith(self.refusal) for m in own) for own in heard)
