"""Every rollout counts the same however long it is, and within it every turn (RLinf-VLA's length norm, 2510.06710).

Papers: rlinf-vla
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.roles import Reduction
from strop.types import FloatArray, Group, Rollout


@dataclass(frozen=True)
class EqualTurns(Reduction):
    """1 / (rollouts of the whole batch * turns of the rollout * tokens of the turn), of those that wrote something."""

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        count = max(self.mass(groups), 1.0)
        return {rollout.id: _shares(rollout, count) for group in groups for rollout in group.scored}

    def mass(self, groups: Sequence[Group]) -> float:
        """What these weigh in a batch that they are only a part of."""
        return float(sum(rollout.num_tokens > 0 for group in groups for rollout in group.scored))


def _shares(rollout: Rollout, count: float) -> FloatArray:
    lengths = np.array([len(turn.tokens) for turn in rollout.turns if len(turn.tokens)], dtype=np.int64)
    return np.repeat(1.0 / (count * max(len(lengths), 1) * lengths), lengths).astype(np.float32)
