"""Every attempt of the draw counts the same (GRPO, 2402.03300), so a token of a long one weighs less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.roles import Reduction
from strop.types import FloatArray, Group


@dataclass(frozen=True)
class SequenceMean(Reduction):
    """1 / (attempts of the whole draw * tokens of the attempt); attempts without a token are not counted."""

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        attempts = [attempt for group in groups for attempt in group.scored]
        num_written = sum(attempt.num_tokens > 0 for attempt in attempts)
        shares = {attempt.id: 1.0 / max(num_written * attempt.num_tokens, 1) for attempt in attempts}
        return {attempt.id: np.full(attempt.num_tokens, shares[attempt.id], dtype=np.float32) for attempt in attempts}

    def mass(self, groups: Sequence[Group]) -> float:
        """What these weigh in a draw that they are only a part of."""
        return float(sum(attempt.num_tokens > 0 for group in groups for attempt in group.scored))
