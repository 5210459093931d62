"""Advantages without comparison: a constant, or the reward minus a predicted value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.types import Group

# One advantage for every rollout: supervised training, and expert iteration on filtered rollouts.


@dataclass(frozen=True)
class Constant(Advantage):
    """A = value, independent of the reward."""

    value: float = 1.0  # the advantage of every token

    is_local: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            for rollout in group.scored:
                rollout.set_advantage(self.value)


# Reward minus a value model's prediction per token: Monte Carlo returns with a learned baseline.


@dataclass(frozen=True)
class Residual(Advantage):
    """A_t = reward - V_t, undivided, with the reward as the return of every token: Gae with trace and discount 1."""

    needs_values: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        for rollout in (rollout for group in groups for rollout in group.scored):
            values = rollout.values
            if values is None or len(values) != rollout.num_tokens:
                found = 0 if values is None else len(values)
                raise ConfigurationError(
                    f"Residual needs one value per token: {rollout.num_tokens} tokens, got {found} values"
                )
            rollout.returns = np.full(rollout.num_tokens, rollout.reward, dtype=np.float32)
            rollout.advantages = (rollout.reward - values.astype(np.float64)).astype(np.float32)
