"""How a judge of steps is trained (FAPO, 2510.22543): for its verdict, and for how near it comes to the first mistake.

Papers: fapo
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.judging.first_error import truth
from strop.environments.judging.first_error_question import CLEAN, located
from strop.roles import Reward
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class ErrorDistance(Reward):
    """1 where a clean solution is called clean, 1 - |said - wrong| / steps where a flawed one is called flawed.

    -1 where the verdict is wrong, or where the reply names no step of the solution. For tasks of `FirstError`.
    """

    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [self._mark(attempt) for attempt in group.trajectories]

    def _mark(self, attempt: Trajectory) -> float:
        wrong, steps = truth(attempt.task)
        said = located(attempt.reply, steps)
        if said is None or (said == CLEAN) != (wrong == CLEAN):
            return -1.0
        return 1.0 - abs(said - wrong) / steps
