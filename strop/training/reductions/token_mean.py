"""Every token of the draw counts the same (DAPO, 2503.14476): long attempts weigh more than short ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.roles import Reduction
from strop.types import FloatArray, Group


@dataclass(frozen=True)
class TokenMean(Reduction):
    """1 / tokens of the whole draw, so that a split into micro-batches changes nothing."""

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        attempts = [attempt for group in groups for attempt in group.scored]
        share = 1.0 / max(sum(attempt.num_tokens for attempt in attempts), 1)
        return {attempt.id: np.full(attempt.num_tokens, share, dtype=np.float32) for attempt in attempts}

    def mass(self, groups: Sequence[Group]) -> float:
        """What these weigh in a draw that they are only a part of."""
        return float(sum(attempt.num_tokens for group in groups for attempt in group.scored))
