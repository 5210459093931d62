"""The negative control: a reward that knows nothing, under which nothing may be learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.roles import Reward
from strop.types import Group


@dataclass(frozen=True)
class Flat(Reward):
    """The same reward for every rollout."""

    value: float = 1.0  # of every rollout
    weight: float = 1.0

    is_inline: ClassVar[bool] = True
    pays_blindly: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [self.value] * len(group.rollouts)
