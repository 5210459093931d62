"""Every task of the batch counts the same: tokens are averaged over the rollouts of a group, then over groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.roles import Reduction
from strop.types import FloatArray, Group


@dataclass(frozen=True)
class GroupWise(Reduction):
    """1 / (groups of the whole batch * tokens of the group); groups without a token are not counted."""

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        sizes = [sum(rollout.num_tokens for rollout in group.scored) for group in groups]
        num_written = max(sum(size > 0 for size in sizes), 1)
        return {
            rollout.id: np.full(rollout.num_tokens, 1.0 / max(num_written * size, 1), dtype=np.float32)
            for group, size in zip(groups, sizes, strict=True)
            for rollout in group.scored
        }

    def mass(self, groups: Sequence[Group]) -> float:
        """What these weigh in a batch that they are only a part of."""
        return float(sum(any(rollout.num_tokens for rollout in group.scored) for group in groups))
