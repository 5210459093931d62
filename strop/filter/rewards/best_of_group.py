"""What the best of a group was paid, given to all of it: as the reward of an evaluation with k rollouts, pass@k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.roles import Reward
from strop.types import Group


@dataclass(frozen=True)
class BestSibling(Reward):
    """The largest sum of turn rewards among the rollouts that count."""

    weight: float = 1.0

    is_inline: ClassVar[bool] = True
    is_relative: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        best = max((float(sum(rollout.turn_rewards)) for rollout in group.scored), default=0.0)
        return [best] * len(group.rollouts)
