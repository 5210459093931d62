"""Every token of the policy's own counts the same; a teacher's have no share and no place in the denominator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.roles import Reduction
from strop.types import FloatArray, Group, Origin, Rollout


@dataclass(frozen=True)
class OwnTokenMean(Reduction):
    """1 / own tokens of the whole batch, 0 for demonstrations: for losses that only look at them (CalibRL)."""

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        share = 1.0 / max(self.mass(groups), 1.0)
        return {
            rollout.id: np.full(rollout.num_tokens, share * _is_own(rollout), dtype=np.float32)
            for group in groups
            for rollout in group.scored
        }

    def mass(self, groups: Sequence[Group]) -> float:
        """What these weigh in a batch that they are only a part of."""
        rollouts = [rollout for group in groups for rollout in group.scored]
        return float(sum(rollout.num_tokens for rollout in rollouts if _is_own(rollout)))


def _is_own(rollout: Rollout) -> bool:
    return rollout.origin is not Origin.TEACHER
