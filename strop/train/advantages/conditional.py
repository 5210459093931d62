"""CANON's credit (2509.23962): attempts of high and low entropy (or length) are compared with the other half, too.

Which half is better is left to the rewards: no direction is set in advance unless `direction` differs from 1.
Reading: a group of which one attempt counts gets 0, where the release gives the bare reward.
Papers: canon
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.errors import ConfigurationError, nearest
from strop.roles import Advantage
from strop.types import Group, Trajectory

_METRICS = ("entropy", "length")


@dataclass(frozen=True)
class Conditional(Advantage):
    """A = mix * (r - mean of the other half) + (1 - mix) * (r - mean of the own half), halves by rank of the metric.

    The low half is the first floor(G / 2) in a stable order. With an even group, mix 0.5 is the group mean's credit.
    `direction` a weighs one half: r - a * low and a * r - high by entropy, a * r - short and r - a * long by length.
    """

    metric: str = "entropy"  # entropy or length
    mix: float = 1.0  # share of the comparison with the other half
    direction: float = 1.0  # weight of one half; 1: neither is favoured

    min_group: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if self.metric not in _METRICS:
            raise ConfigurationError(f"Conditional knows no metric {self.metric!r}: {nearest(self.metric, _METRICS)}")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"entropy"} if self.metric == "entropy" else ())

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            attempts = sorted(group.scored, key=self._measure)  # stable: ties stay in order
            for attempt, credit in zip(attempts, self._credits(attempts), strict=True):
                attempt.credit(float(credit))

    def _measure(self, attempt: Trajectory) -> float:
        if self.metric == "length" or not attempt.num_tokens:
            return float(attempt.num_tokens if self.metric == "length" else 0.0)
        if "entropy" not in attempt.notes:
            raise ConfigurationError(
                f"Conditional needs the entropies of attempt {attempt.id}, it has no notes of them"
            )
        return float(attempt.notes["entropy"].mean())

    def _credits(self, attempts: Sequence[Trajectory]) -> NDArray[np.float64]:
        """Of attempts in the metric's order: [G]."""
        rewards = np.array([attempt.reward for attempt in attempts], dtype=np.float64)
        half = len(rewards) // 2
        if not half:
            return np.zeros(len(rewards))
        low, high = rewards[:half].mean(), rewards[half:].mean()
        of_low, of_high = (1.0, self.direction) if self.metric == "length" else (self.direction, 1.0)
        inter = np.concatenate([of_low * rewards[:half] - of_high * high, of_high * rewards[half:] - of_low * low])
        intra = np.concatenate([rewards[:half] - low, rewards[half:] - high])
        return self.mix * inter + (1 - self.mix) * intra
