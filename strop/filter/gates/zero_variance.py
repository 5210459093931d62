"""Dynamic sampling of DAPO (2503.14476): groups whose rollouts all have the same reward are dropped.

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
    """Gate that drops groups of equal total rewards; the pipeline generates replacements.

    Shaping terms count: with a length penalty, a group of right answers has unequal rewards and is kept.
    """

    min_group: ClassVar[int] = 2

    def __call__(self, group: Group) -> GateResult:
        rewards = group.rewards
        if len(rewards) == 0:
            return GateResult(None, "no rollout counts")
        if float(np.ptp(rewards)) <= _ROUNDING:
            return GateResult(None, f"all rewards are {float(rewards[0]):g}")
        return GateResult(group)
