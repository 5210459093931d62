"""DAPO's dynamic sampling (2503.14476): a group whose attempts all did equally well teaches nothing and is dropped.

Papers: dapo
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.roles import Gate
from strop.types import Group, Verdict

_ROUNDING = 1e-9  # of weighted sums: 0.7 + 0.2 + 0.1 is not 0.6 + 0.4


@dataclass(frozen=True)
class ZeroVariance(Gate):
    """Drop groups without contrast in the total reward; the pipeline generates others in their place.

    Shaping terms count: a length penalty makes a group of right answers uneven, and it stays.
    """

    min_group: ClassVar[int] = 2

    def __call__(self, group: Group) -> Verdict:
        rewards = group.rewards
        if len(rewards) == 0:
            return Verdict(None, "no attempt counts")
        if float(np.ptp(rewards)) <= _ROUNDING:
            return Verdict(None, f"all rewards are {float(rewards[0]):g}")
        return Verdict(group)
