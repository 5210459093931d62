"""WebRL's credit (2411.02337): how much a turn brought the end nearer, half by the critic, half by the outcome.

Reading: the paper's form; its release adds both, takes 0.05 off, cuts at 1 and keeps the sign.
Papers: webrl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.training.arithmetic.turn_returns import on_written, turn_bounds, turn_payments
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class TurnProgress(Advantage):
    """A_t = trace * (r_t + V_(t+1) - V_t) + (1 - trace) * (sum of r from t on - V_t); V before a turn's first token."""

    trace: float = 0.5  # 1 trusts the critic from turn to turn, 0 what was paid in the end

    needs_values: ClassVar[bool] = True
    is_local: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.trace <= 1:
            raise ConfigurationError(f"TurnProgress needs 0 <= trace <= 1, got {self.trace}")

    def __call__(self, groups: Sequence[Group]) -> None:
        for attempt in (attempt for group in groups for attempt in group.scored):
            self._credit(attempt)

    def _credit(self, attempt: Trajectory) -> None:
        if attempt.values is None or len(attempt.values) != attempt.num_tokens:
            raise ConfigurationError(f"TurnProgress needs a value for each token of attempt {attempt.id}: add a critic")
        first, _ = turn_bounds(attempt)
        values = np.append(attempt.values.astype(np.float64)[first], 0.0)  # [U + 1]
        paid = np.array(on_written(attempt, turn_payments(attempt)))  # [U]
        later = np.cumsum(paid[::-1])[::-1]
        credit = self.trace * (paid + values[1:] - values[:-1]) + (1 - self.trace) * (later - values[:-1])
        lengths = [len(turn.tokens) for turn in attempt.turns if len(turn.tokens)]
        attempt.advantages = np.repeat(credit, lengths).astype(np.float32)
