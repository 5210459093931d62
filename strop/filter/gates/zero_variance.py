"""DAPO's dynamic sampling (2503.14476): a group whose rollouts all did equally well teaches nothing and is dropped.

Papers: dapo
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.roles import Gate
from strop.types import GateResult, Group

_ROUNDING = 1e-9  # of weighted sums: 0.7 + 0.2 + 0.1 is not 0.6 + 0.4


@dataclass(frozen=True)
class ZeroVariance(Gate):
    """Drop groups without contrast in the total reward; the pipeline generates others in their place.

    Shaping terms count: a length penalty makes a group of right answers uneven, and it stays.
    """

    min_group: ClassVar[int] = 2

    def __call__(self, group: Group) -> GateResult:
        rewards = group.rewards
        if len(rewards) == 0:
            return GateResult(None, "no rollout counts")
        if float(np.ptp(rewards)) <= _ROUNDING:
            return GateResult(None, f"all rewards are {float(rewards[0]):g}")
        return GateResult(group)
