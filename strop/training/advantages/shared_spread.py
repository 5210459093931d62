"""Lite PPO's credit (Liu et al., 2508.08221): the mean of the group, the spread of the whole draw.

Reading: the spread is that of the raw rewards, as the paper says, and not of the centred ones. The other half of Lite
PPO is the reduction `TokenMean`.
Papers: tricks-or-traps
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.roles import Advantage
from strop.types import Group


@dataclass(frozen=True)
class SharedSpread(Advantage):
    """A = (r - mean of the group) / (std of the draw + epsilon), the std divided by n - 1.

    Differences between tasks keep the divisor away from 0 where single groups are uniform; no group is blown up.
    """

    epsilon: float = 1e-6

    min_group: ClassVar[int] = 2

    def __call__(self, groups: Sequence[Group]) -> None:
        rewards = [np.array([attempt.reward for attempt in group.scored], dtype=np.float64) for group in groups]
        everything = np.concatenate([*rewards, np.zeros(0)])
        spread = float((everything - everything[:1]).std(ddof=1)) if len(everything) > 1 else 0.0
        for group, own in zip(groups, rewards, strict=True):
            own = own - own[:1]  # equal rewards give exactly 0
            for attempt, reward in zip(group.scored, own, strict=True):
                attempt.credit(float((reward - own.mean()) / (spread + self.epsilon)))
