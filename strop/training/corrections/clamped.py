"""Clamped importance sampling: the ratio held in a band, so that no token is lost and none counts too much."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from strop.training.arithmetic.ratios import log_weights
from strop.training.arithmetic.targeted import Targeted
from strop.training.batch import Batch


@dataclass(frozen=True)
class Clamped(Targeted):
    """Weigh a token by target / behaviour held within [low, high], detached."""

    low: float = 0.5  # least weight
    high: float = 2.0  # largest weight
    target: str = "current"  # the policy that tokens are weighed to

    def __call__(self, logprobs: Tensor, batch: Batch) -> Tensor:
        return log_weights(self.target, batch, logprobs).exp().clamp(self.low, self.high)  # [T]
