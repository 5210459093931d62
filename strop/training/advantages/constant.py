"""The same advantage for every rollout: supervised training, and expert iteration on what a gate kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.roles import Advantage
from strop.types import Group


@dataclass(frozen=True)
class Constant(Advantage):
    """A = value, whatever the reward."""

    value: float = 1.0  # the advantage of every token

    is_local: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            for rollout in group.scored:
                rollout.set_advantage(self.value)
