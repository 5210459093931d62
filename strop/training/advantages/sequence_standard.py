"""SeeUPO's credit (2602.06554): the group's mean is taken off, the draw's spread divides, and outliers are held.

Dividing by a group's own spread is what the paper shows to lose convergence. The other half of SeeUPO, one update per
turn from the last to the first, is the trainer `TurnByTurn`.
Papers: seeupo
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.types import Group

_FLAT = 1e-6  # a spread below it is not divided by


@dataclass(frozen=True)
class SequenceStandard(Advantage):
    """a = R - mean of the group; A = (a - mean) / std over the attempts of the draw (n - 1), held within +-limit."""

    limit: float = 3.0  # credit is held within it

    min_group: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not self.limit > 0:
            raise ConfigurationError(f"SequenceStandard needs a limit > 0, got {self.limit}")

    def __call__(self, groups: Sequence[Group]) -> None:
        attempts = [attempt for group in groups for attempt in group.scored]
        centred = np.concatenate([*(_centred(group) for group in groups), np.zeros(0)])
        spread = float(centred.std(ddof=1)) if len(centred) > 1 else 0.0
        centred -= centred.mean() if len(centred) else 0.0
        for attempt, value in zip(attempts, centred, strict=True):
            scaled = value / spread if spread > _FLAT else value
            attempt.credit(float(np.clip(scaled, -self.limit, self.limit)))


def _centred(group: Group) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """[G]."""
    rewards = np.array([attempt.reward for attempt in group.scored], dtype=np.float64)
    rewards -= rewards[:1].copy()
    return rewards - rewards.mean() if len(rewards) else rewards
