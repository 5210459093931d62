"""Every token of the policy's own counts the same; a teacher's have no share and no place in the denominator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.roles import Reduction
from strop.types import FloatArray, Group, Origin, Trajectory


@dataclass(frozen=True)
class OwnTokenMean(Reduction):
    """1 / own tokens of the whole draw, 0 for demonstrations: for losses that only look at them (CalibRL)."""

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        share = 1.0 / max(self.mass(groups), 1.0)
        return {
            attempt.id: np.full(attempt.num_tokens, share * _is_own(attempt), dtype=np.float32)
            for group in groups
            for attempt in group.scored
        }

    def mass(self, groups: Sequence[Group]) -> float:
        """What these weigh in a draw that they are only a part of."""
        attempts = [attempt for group in groups for attempt in group.scored]
        return float(sum(attempt.num_tokens for attempt in attempts if _is_own(attempt)))


def _is_own(attempt: Trajectory) -> bool:
    return attempt.origin is not Origin.TEACHER
