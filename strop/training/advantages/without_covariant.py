"""SPEAR's covariance clip (2509.22601): tokens that would make the policy surer of itself most are not pushed at all.

cov = (A - mean A) * (log p - mean log p) over all tokens of the draw. Reading: chosen once per draw, from the policy
before the step, so that no split of a step changes it; the release chooses anew in every micro-batch. A token without
credit has no loss, as there. What the ratio's clip holds already is not left out of the choice.
Papers: spear
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.training.requirements import LOGPROBS, Note
from strop.types import Group

_HIGHEST = 40.0  # covariance beyond which a token is left alone, as released


@dataclass(frozen=True)
class WithoutCovariant(Advantage):
    """What `inner` says, and 0 at a share of the tokens, at least 1, drawn from those with a covariance above `low`."""

    inner: Advantage
    share: float = 0.02  # of all written tokens of the draw
    low: float = 1.0  # covariance above which a token may lose its credit
    seed: int = 0  # of the choice

    needs: ClassVar[frozenset[Note]] = frozenset({LOGPROBS})

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1 or not 0 <= self.low < _HIGHEST:
            raise ConfigurationError(
                f"WithoutCovariant needs 0 <= share <= 1 and 0 <= low < {_HIGHEST:g}, got {self.share} and {self.low}"
            )

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        attempts = [each for group in groups for each in group.scored if each.num_tokens]
        if not attempts or not self.share:
            return
        credit = np.concatenate([each.advantages for each in attempts if each.advantages is not None])  # [N]
        logprobs = np.concatenate([LOGPROBS.of(each) for each in attempts]).astype(np.float64)  # [N]
        covariance = (credit - credit.mean()) * (logprobs - logprobs.mean())  # [N]
        chosen = self._chosen(covariance, max(group.version for group in groups))
        ends = np.cumsum([each.num_tokens for each in attempts])
        for attempt, end in zip(attempts, ends.tolist(), strict=True):
            assert attempt.advantages is not None
            own = chosen[(chosen >= end - attempt.num_tokens) & (chosen < end)]
            attempt.advantages[own - (end - attempt.num_tokens)] = 0.0

    def _chosen(self, covariance: np.ndarray, version: int) -> np.ndarray:
        """Places of the tokens that lose their credit."""
        able = np.flatnonzero((covariance > self.low) & (covariance < _HIGHEST))
        count = min(max(int(self.share * len(covariance)), 1), len(able))
        return np.random.default_rng([self.seed, version]).choice(able, count, replace=False)
