"""Every attempt that was made counts the same, and its twin, the same replies behind other messages, as much as it.

Papers: nudgerl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.roles import Reduction
from strop.training.arithmetic.twins import made
from strop.types import FloatArray, Group


@dataclass(frozen=True)
class WithTwins(Reduction):
    """1 / (attempts made in the whole draw * tokens of the attempt): twins have a share and no place in the count.

    A loss on attempts and another one on their twins are then both means over the attempts that were made.
    """

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        count = max(self.mass(groups), 1.0)
        attempts = [attempt for group in groups for attempt in group.scored]
        return {
            attempt.id: np.full(attempt.num_tokens, 1.0 / (count * max(attempt.num_tokens, 1)), dtype=np.float32)
            for attempt in attempts
        }

    def mass(self, groups: Sequence[Group]) -> float:
        """What these weigh in a draw that they are only a part of."""
        return float(sum(attempt.num_tokens > 0 for group in groups for attempt in made(group.scored)))
