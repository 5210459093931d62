"""Every rollout of the batch counts the same (GRPO, 2402.03300), so a token of a long one weighs less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.roles import Reduction
from strop.types import FloatArray, Group


@dataclass(frozen=True)
class SequenceMean(Reduction):
    """1 / (rollouts of the whole batch * tokens of the rollout); rollouts without a token are not counted."""

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        rollouts = [rollout for group in groups for rollout in group.scored]
        num_written = sum(rollout.num_tokens > 0 for rollout in rollouts)
        shares = {rollout.id: 1.0 / max(num_written * rollout.num_tokens, 1) for rollout in rollouts}
        return {rollout.id: np.full(rollout.num_tokens, shares[rollout.id], dtype=np.float32) for rollout in rollouts}

    def mass(self, groups: Sequence[Group]) -> float:
        """What these weigh in a batch that they are only a part of."""
        return float(sum(rollout.num_tokens > 0 for group in groups for rollout in group.scored))
