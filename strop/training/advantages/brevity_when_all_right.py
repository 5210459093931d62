"""ConciseR's second stage (2505.21178): length counts only where every attempt of a group is right.

The paper's length reward was not found; the plainest reading is 1 + (1 - tokens / max_tokens). With an inner advantage
that divides by the group's spread any falling line gives the same credit, minus the standardised length. The first
stage drops groups without contrast, and this one needs just those: no `ZeroVariance` here.
Papers: conciser
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.success import ROUNDING
from strop.training.arithmetic.reshaped_rewards import credit_adjusted
from strop.types import Group


@dataclass(frozen=True)
class BrevityWhenAllRight(Advantage):
    """r' = r + 1 - tokens / max_tokens where all attempts of the group reach `right`, else r; `inner` judges r'."""

    inner: Advantage
    max_tokens: int  # of an attempt
    right: float = 1.0  # reward of a right attempt

    min_group: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ConfigurationError(f"BrevityWhenAllRight needs max_tokens >= 1, got {self.max_tokens}")

    def __call__(self, groups: Sequence[Group]) -> None:
        credit_adjusted(groups, self._rewards, self.inner)

    def _rewards(self, group: Group) -> NDArray[np.float64]:
        rewards = np.array([attempt.reward for attempt in group.scored], dtype=np.float64)
        if not np.all(rewards >= self.right - ROUNDING):
            return rewards
        lengths = np.array([attempt.num_tokens for attempt in group.scored], dtype=np.float64)
        return rewards + 1.0 - lengths / self.max_tokens
