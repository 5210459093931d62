"""Fixed rollout budget: the same group size for every task."""

from __future__ import annotations

from dataclasses import dataclass

from strop.errors import ConfigurationError
from strop.roles import Budget
from strop.types import Group


@dataclass(frozen=True)
class Fixed(Budget):
    """`size` rollouts per group."""

    size: int = 8  # rollouts of every task

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ConfigurationError(f"Fixed needs >= 1 rollout per group, got {self.size} (set group_size)")

    def rollouts(self, group: Group) -> int:
        return 0 if group.rollouts else self.size
