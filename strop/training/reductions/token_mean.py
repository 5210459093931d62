"""Every token of the batch counts the same (DAPO, 2503.14476): long rollouts weigh more than short ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.roles import Reduction
from strop.types import FloatArray, Group


@dataclass(frozen=True)
class TokenMean(Reduction):
    """1 / tokens of the whole batch, so that a split into micro-batches changes nothing."""

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        rollouts = [rollout for group in groups for rollout in group.scored]
        share = 1.0 / max(sum(rollout.num_tokens for rollout in rollouts), 1)
        return {rollout.id: np.full(rollout.num_tokens, share, dtype=np.float32) for rollout in rollouts}

    def mass(self, groups: Sequence[Group]) -> float:
        """What these weigh in a batch that they are only a part of."""
        return float(sum(rollout.num_tokens for group in groups for rollout in group.scored))
