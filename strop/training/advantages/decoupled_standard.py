"""GDPO's credit (2601.05242): every reward is standardised on its own before they are added up.

Standardising the sum forgets which rewards made it: an attempt that wins one of two rewards and one that wins both look
alike in their groups. Reading: the last standardisation is over attempts and not over tokens, and is done for a single
reward as well.
Papers: gdpo
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.errors import ConfigurationError, nearest
from strop.roles import Advantage
from strop.types import Group


@dataclass(frozen=True)
class DecoupledStandard(Advantage):
    """S = sum_k weight_k * (r_k - mean) / (std + epsilon) in the group; A = (S - mean) / (std + epsilon) over the draw.

    `weights` are by reward name, 1 where none is given. They act after the first division, which would cancel them;
    the weights of the rewards themselves are not used.
    """

    weights: Mapping[str, float] = field(default_factory=dict)  # by reward name; 1 where none is given
    epsilon: float = 1e-4

    min_group: ClassVar[int] = 2

    def __call__(self, groups: Sequence[Group]) -> None:
        attempts = [attempt for group in groups for attempt in group.scored]
        names = sorted({name for attempt in attempts for name in attempt.rewards})
        if unknown := sorted(set(self.weights) - set(names)):
            raise ConfigurationError(f"DecoupledStandard weighs a reward {unknown[0]!r}: {nearest(unknown[0], names)}")
        sums = np.concatenate([self._sum(group, names) for group in groups] or [np.zeros(0)])
        for attempt, value in zip(attempts, _standard(sums, self.epsilon), strict=True):
            attempt.credit(float(value))

    def _sum(self, group: Group, names: Sequence[str]) -> NDArray[np.float64]:
        """[G]."""
        total = np.zeros(len(group.scored))
        for name in names:
            rewards = np.array([attempt.rewards.get(name, 0.0) for attempt in group.scored], dtype=np.float64)
            total += self.weights.get(name, 1.0) * _standard(rewards, self.epsilon)
        return total


def _standard(values: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """(x - mean) / (std + epsilon), the std divided by n - 1; equal values are exactly 0."""
    values = values - values[:1]
    spread = values.std(ddof=1) if len(values) > 1 else 0.0
    if spread == 0.0:
        return np.zeros_like(values)
    return (values - values.mean()) / (spread + epsilon)  # type: ignore[no-any-return]
