"""Credit by sentence (2509.25409): what a sentence was paid stays with it, what the reply was paid goes to them all.

Papers: trm
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.roles import Advantage
from strop.training.arithmetic.turn_returns import ends_of, placed_payments
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class SentenceStandard(Advantage):
    """A = (u - mean) / (std + epsilon) over all sentences of a group, u = its pay times their number + the rest.

    Pay per sentence is a share of the reply's, hence the number; the rest was not paid at the end of a sentence.
    A reply whose sentences are not marked is one sentence; what stands behind the last mark belongs to the last.
    """

    epsilon: float = 1e-6  # keeps the divisor above 0

    min_group: ClassVar[int] = 2
    is_local: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            found = [_sentences(attempt) for attempt in group.scored]
            worth = np.concatenate([values for values, _ in found]) if found else np.zeros(0)  # [S]
            spread = worth.std(ddof=1) if len(worth) > 1 and np.ptp(worth) > 0 else 0.0
            for attempt, (values, lengths) in zip(group.scored, found, strict=True):
                credit = (values - worth.mean()) / (spread + self.epsilon) if spread else np.zeros_like(values)
                attempt.advantages = np.repeat(credit, lengths).astype(np.float32)


def _sentences(attempt: Trajectory) -> tuple[NDArray[np.float64], list[int]]:
    """What each sentence is worth and how many tokens it has: [S]; together they are all written tokens."""
    paid, ends = placed_payments(attempt), ends_of(attempt)
    own = np.array([paid[end] for end in ends] or [0.0])
    bounds = [0, *(end + 1 for end in ends[:-1]), len(paid)]
    rest = attempt.reward - own.sum()
    return own * len(own) + rest, np.diff(bounds).tolist()
