"""R3L's credit (2601.03715): what did better than its siblings weighs more, and nothing before the pivot weighs at all.

Papers: r3l
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.success import is_right
from strop.training.arithmetic.pivots import num_before
from strop.types import Group, Metrics


@dataclass(frozen=True)
class Amplified(Advantage):
    """A = r - mean, times `factor` where it is positive; `success` for a reward of 1, whatever its siblings did.

    A group of one is compared with 0. Tokens before an attempt's pivot get 0.
    """

    factor: float = 3.0  # of what is better than the mean
    success: float = 1.0  # credit of a full success, as released; 0: it is amplified as any other, as the paper says

    is_local: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.factor < 1 or self.success < 0:
            raise ConfigurationError(f"Amplified needs factor >= 1 and success >= 0, got {self.factor}, {self.success}")

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            rewards = group.rewards
            mean = float(rewards.mean()) if len(rewards) > 1 else 0.0
            for attempt in group.scored:
                attempt.credit(self._credit(attempt.reward, mean))
                assert attempt.advantages is not None
                attempt.advantages[: num_before(attempt)] = 0.0

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says which share of tokens stands before a pivot, and which share of attempts gets more than 0."""
        attempts = [attempt for group in groups for attempt in group.scored if attempt.num_tokens]
        before = sum(num_before(attempt) for attempt in attempts)
        raised = [bool(np.any(attempt.advantages > 0)) for attempt in attempts if attempt.advantages is not None]
        tokens = sum(attempt.num_tokens for attempt in attempts)
        return {"before_pivot": before / max(tokens, 1), "raised_share": sum(raised) / max(len(raised), 1)}

    def _credit(self, reward: float, mean: float) -> float:
        if self.success and is_right(reward):
            return self.success
        difference = reward - mean
        return self.factor * difference if difference > 0 else difference
