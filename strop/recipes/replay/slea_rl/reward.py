"""Penalty for every action that the environment refused (SLEA-RL, 2603.18079)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.roles import Reward
from strop.types import Group, Rollout


@dataclass(frozen=True)
class Refused(Reward):
    """-price for each observation that starts with `refusal`; the one after the last turn is not recorded."""

    price: float = 0.1
    refusal: str = "error"  # start of an observation that refuses an action
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [-self.price * self._count(rollout) for rollout in group.rollouts]

    def _count(self, rollout: Rollout) -> int:
        return sum(message.content.startswith(self.refusal) for turn in rollout.turns for message in turn.told)
