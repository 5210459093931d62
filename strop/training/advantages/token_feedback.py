"""RLTF's credit (2307.04349): what an attempt and each of its tokens were told, less what the greedy one was told.

Papers: rltf
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.filter.feedback import GREEDY
from strop.roles import Advantage
from strop.training.arithmetic.turn_returns import placed_payments
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class TokenFeedback(Advantage):
    """A_t = R + p_t - b: R is paid at the end, p_t at token t alone, and b is the fact `greedy`.

    No return: what a token is told says nothing about those before it. Where the greedy attempt failed, the mean R of
    the policy's own attempts stands for it; one that is shown says nothing about the policy.
    """

    is_local: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            mean = float(np.mean([_end(attempt) for attempt in group.own or group.scored] or [0.0]))
            for attempt in group.scored:
                baseline = attempt.facts.get(GREEDY, mean)
                credit = _end(attempt) - baseline + placed_payments(attempt)  # [N]
                attempt.advantages = credit.astype(np.float32)


def _end(attempt: Trajectory) -> float:
    return attempt.reward - float(placed_payments(attempt).sum())
