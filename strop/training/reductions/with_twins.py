"""Every rollout that was made counts the same, and its twin, the same completions behind other messages, as much as it.

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
    """1 / (rollouts made in the whole batch * tokens of the rollout): twins have a share and no place in the count.

    A loss on rollouts and another one on their twins are then both means over the rollouts that were made.
    """

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        count = max(self.mass(groups), 1.0)
        rollouts = [rollout for group in groups for rollout in group.scored]
        return {
            rollout.id: np.full(rollout.num_tokens, 1.0 / (count * max(rollout.num_tokens, 1)), dtype=np.float32)
            for rollout in rollouts
        }

    def mass(self, groups: Sequence[Group]) -> float:
        """What these weigh in a batch that they are only a part of."""
        return float(sum(rollout.num_tokens > 0 for group in groups for rollout in made(group.scored)))
