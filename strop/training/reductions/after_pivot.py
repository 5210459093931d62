"""R3L's token mean (2601.03715): tokens before the turn at which two attempts part are not counted.

Papers: r3l
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.roles import Reduction
from strop.training.arithmetic.pivots import num_before
from strop.types import FloatArray, Group


@dataclass(frozen=True)
class AfterPivot(Reduction):
    """1 / tokens of the whole draw from each attempt's pivot on; 0 before it."""

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        count = max(self.mass(groups), 1.0)
        attempts = [attempt for group in groups for attempt in group.scored]
        return {
            attempt.id: (np.arange(attempt.num_tokens) >= num_before(attempt)).astype(np.float32) / np.float32(count)
            for attempt in attempts
        }

    def mass(self, groups: Sequence[Group]) -> float:
        """What these weigh in a draw that they are only a part of."""
        attempts = [attempt for group in groups for attempt in group.scored]
        return float(sum(attempt.num_tokens - num_before(attempt) for attempt in attempts))
