"""The same number of attempts for every task."""

from __future__ import annotations

from dataclasses import dataclass

from strop.errors import ConfigurationError
from strop.roles import Budget
from strop.types import Group


@dataclass(frozen=True)
class Fixed(Budget):
    """`size` attempts per group, whatever the task."""

    size: int = 8  # attempts at every task

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ConfigurationError(f"Fixed needs >= 1 attempt per group, got {self.size}")

    def attempts(self, group: Group) -> int:
        return 0 if group.trajectories else self.size
