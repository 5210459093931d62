"""ALP (2506.05256): a token costs the more, the more often the task is solved.

Reading: the attempt's own length is what is paid for (two readings of the paper print the maximum instead, which would
leave no signal within a group). Right and wrong attempts both pay.
Papers: alp
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.roles import Advantage
from strop.success import ROUNDING
from strop.training.arithmetic.reshaped_rewards import credit_adjusted
from strop.types import Group


@dataclass(frozen=True)
class AdaptiveLength(Advantage):
    """r' = r - beta * tokens * max(solve rate, 1 / K), K the size of the group; `inner` judges r'.

    The paper's beta is for answers of thousands of tokens. Where `inner` divides by the group's spread, beta hardly
    matters in groups that are all right or all wrong, and its epsilon does.
    """

    inner: Advantage
    beta: float = 1e-7  # price of a token in a group that is all right
    right: float = 1.0  # the reward of a solved attempt

    min_group: ClassVar[int] = 2

    def __call__(self, groups: Sequence[Group]) -> None:
        credit_adjusted(groups, self.rewards, self.inner)

    def rewards(self, group: Group) -> NDArray[np.float64]:
        """After the price of their tokens: [G]."""
        rewards = np.array([attempt.reward for attempt in group.scored], dtype=np.float64)
        lengths = np.array([attempt.num_tokens for attempt in group.scored], dtype=np.float64)
        rate = float((rewards >= self.right - ROUNDING).mean()) if len(rewards) else 0.0
        return rewards - self.beta * lengths * max(rate, 1 / max(len(rewards), 1))
