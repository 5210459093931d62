"""Masked importance sampling (Liu, Li et al., 2025; 2512.23075): tokens whose ratio leaves the band leave the loss."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from strop.training.arithmetic.ratios import log_weights
from strop.training.arithmetic.targeted import Targeted
from strop.training.batch import Batch


@dataclass(frozen=True)
class Masked(Targeted):
    """Weigh a token by ratio * [low <= ratio <= high] with ratio = target / behaviour, detached.

    A masked token keeps its place in the denominator, so the others do not grow.
    """

    low: float = 0.5  # a token below it gets no gradient
    high: float = 2.0  # a token above it gets no gradient
    target: str = "current"  # the policy that tokens are weighed to

    def __call__(self, logprobs: Tensor, batch: Batch) -> Tensor:
        ratio = log_weights(self.target, batch, logprobs).exp()  # [T]
        return ratio.where((ratio >= self.low) & (ratio <= self.high), ratio.new_zeros(()))
