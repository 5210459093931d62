"""A task is tried in waves of equal size, again and again or only while the last wave failed (GHPO, SEELE).

Reading: lost is a wave whose rollouts were all paid 0, one of which at least ended by itself; what that wave read does
not matter. Rollouts that the environment failed never count.
Papers: ghpo, seele
"""

from __future__ import annotations

from dataclasses import dataclass

from strop.errors import ConfigurationError
from strop.roles import Budget
from strop.success import is_lost
from strop.types import Group

_TOLERANCE = 0.001  # of a reward of 0


@dataclass(frozen=True)
class InWaves(Budget):
    """`size` rollouts in each of up to `waves` waves; what later ones are is the strategy's affair."""

    size: int = 8  # rollouts of one wave
    waves: int = 4  # of one task, at most
    only_when_lost: bool = False  # the next wave comes only where the whole last one failed

    def __post_init__(self) -> None:
        if self.size < 1 or self.waves < 1:
            raise ConfigurationError(f"InWaves needs size >= 1 and waves >= 1, got {self.size} and {self.waves}")

    def rollouts(self, group: Group) -> int:
        made = len(group.rollouts)
        if made >= self.size * self.waves:
            return 0
        is_over = made and self.only_when_lost and not is_lost(group.rollouts[-self.size :], _TOLERANCE)
        return 0 if is_over else self.size
