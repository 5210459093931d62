"""Token sums over a constant (Dr. GRPO, 2503.20783): no rollout's weight depends on its own or others' length.

Papers: dr-grpo
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.errors import ConfigurationError
from strop.roles import Reduction
from strop.types import FloatArray, Group


@dataclass(frozen=True)
class ConstantLength(Reduction):
    """1 / (rollouts of the whole batch * length); `length` is usually the token limit of a rollout.

    The shares add up to mean length / `length`, not to 1, and so does everything logged with them.
    """

    length: int  # that every rollout is divided by

    def __post_init__(self) -> None:
        if self.length < 1:
            raise ConfigurationError(f"ConstantLength needs a length >= 1, got {self.length}")

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        rollouts = [rollout for group in groups for rollout in group.scored]
        num_written = sum(rollout.num_tokens > 0 for rollout in rollouts)
        share = 1.0 / (max(num_written, 1) * self.length)
        return {rollout.id: np.full(rollout.num_tokens, share, dtype=np.float32) for rollout in rollouts}

    def mass(self, groups: Sequence[Group]) -> float:
        """What these weigh in a batch that they are only a part of."""
        return float(sum(rollout.num_tokens > 0 for group in groups for rollout in group.scored))
