"""Offline RL as weighted imitation: turns that were better than expected count more (implicit Q-learning, 2110.06169).

Papers: imagined-conversations
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.training.advantages.turn_advantage import noted_turns
from strop.types import Group, Metrics


@dataclass(frozen=True)
class ExponentialWeights(Advantage):
    """Credit exp(beta * (Q - V)) of the token's turn, held at `limit`: the policy goes to what was done * that.

    With beta = 0 every turn counts alike, which is behaviour cloning.
    """

    beta: float = 3.0  # inverse temperature
    limit: float = 20.0  # of a weight

    needs_values: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.beta < 0 or self.limit < 1:
            raise ConfigurationError(
                f"ExponentialWeights needs beta >= 0 and limit >= 1, got {self.beta} and {self.limit}"
            )

    def __call__(self, groups: Sequence[Group]) -> None:
        for attempt in (attempt for group in groups for attempt in group.scored):
            noted, lengths = noted_turns(attempt, "ExponentialWeights")
            weights = np.minimum(np.exp(np.minimum(self.beta * noted, 50.0)), self.limit)
            attempt.advantages = np.repeat(weights, lengths).astype(np.float32)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how much turns of talks that succeeded count, and those of talks that did not."""
        found: dict[str, list[float]] = {}
        for attempt in (attempt for group in groups for attempt in group.scored):
            if attempt.advantages is not None and len(attempt.advantages):
                name = "weight_won" if attempt.reward > 0 else "weight_lost"
                found.setdefault(name, []).append(float(attempt.advantages.mean()))
        return {name: float(np.mean(values)) for name, values in found.items()}
