"""ETTRL's reshaped credit (2508.11356): what was said with less doubt than the siblings had counts more.

Reading: an attempt's entropy is the mean over all tokens of its replies, those shared with its parents, too. The weight
is held at 0 from below: beyond twice the mean entropy it would turn the sign of the credit.
Papers: ettrl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.roles import Advantage
from strop.training.arithmetic.tree_lineage import lines
from strop.training.requirements import ENTROPY, Note
from strop.types import Group, Metrics, Trajectory


@dataclass(frozen=True)
class EntropyReshaped(Advantage):
    """What `inner` gives, times 1 + (mean - H) / mean: H is the attempt's entropy, mean that over its siblings."""

    inner: Advantage

    min_group: ClassVar[int] = 2
    needs: ClassVar[frozenset[Note]] = frozenset({ENTROPY})

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        for group in groups:
            for attempt, weight in zip(group.scored, _weights(group.scored), strict=True):
                assert attempt.advantages is not None
                attempt.advantages = (attempt.advantages * weight).astype(np.float32)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """How far the weights are from 1 on average."""
        distances = [abs(weight - 1) for group in groups for weight in _weights(group.scored)]
        return {"reshaped": float(np.mean(distances)) if distances else 0.0}


def _weights(attempts: Sequence[Trajectory]) -> NDArray[np.float64]:
    """1 for an attempt without tokens, and for all where nobody was in doubt: [G]."""
    known = {attempt.id: _entropy(attempt) for attempt in attempts}
    paths = [[known[owner][:size] for owner, size in line.items()] for line in lines(attempts).values()]
    means = np.array([np.concatenate(path).mean() if sum(map(len, path)) else np.nan for path in paths])  # [G]
    mean = float(np.nanmean(means)) if np.isfinite(means).any() else 0.0
    if not mean:
        return np.ones(len(attempts))
    return np.where(np.isnan(means), 1.0, np.maximum(2 - means / mean, 0.0))


def _entropy(attempt: Trajectory) -> NDArray[np.float64]:
    """Of its own tokens: [N]."""
    if not attempt.num_tokens:
        return np.zeros(0)
    return ENTROPY.of(attempt).astype(np.float64)
