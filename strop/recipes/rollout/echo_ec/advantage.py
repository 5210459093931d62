"""ECHO's shaped advantage (2602.02150): tokens of high entropy and low confidence get a larger one.

Reading: entropy is that of the ten likeliest tokens, renormalized; confidence is the mean probability of the five
    likeliest. Both are standardized over all tokens of the batch, as released; the paper adds them as they are.
both compared with all tokens of the batch, as released; the paper adds them as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.roles import Advantage
from strop.training.requirements import PolicyStatistic
from strop.training.top_k_stats import confidences, entropies, top
from strop.types import Group, Metrics

_TOP = top(10)
_BOUND = 2.0  # of |S|


@dataclass(frozen=True)
class HybridShaped(Advantage):
    """Advantage of `inner` times 1 + weight * S, S = z(entropy) + z(1 - confidence) clipped to -2 and 2."""

    inner: Advantage
    weight: float = 0.1  # of S

    needs: ClassVar[frozenset[PolicyStatistic]] = frozenset({_TOP})

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        rollouts = [rollout for group in groups for rollout in group.scored if rollout.num_tokens]
        if not rollouts:
            return
        ends = np.cumsum([rollout.num_tokens for rollout in rollouts])[:-1]
        for rollout, factor in zip(rollouts, np.split(self._factors(groups), ends), strict=True):
            assert rollout.advantages is not None
            rollout.advantages = (rollout.advantages * factor).astype(np.float32)

    def _factors(self, groups: Sequence[Group]) -> NDArray[np.float64]:
        """Factors of all sampled tokens of the batch: [T]."""
        rollouts = [rollout for group in groups for rollout in group.scored if rollout.num_tokens]
        tops = np.concatenate([_TOP.of(rollout) for rollout in rollouts])
        shape = _z(entropies(tops)) + _z(1 - confidences(tops))
        return np.asarray(1 + self.weight * np.clip(shape, -_BOUND, _BOUND))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: mean distance of the factors from 1."""
        is_there = any(rollout.num_tokens for group in groups for rollout in group.scored)
        return {"shaped": float(np.abs(self._factors(groups) - 1).mean()) if is_there else 0.0}


def _z(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray((values - values.mean()) / np.sqrt(values.var() + 1e-8))
