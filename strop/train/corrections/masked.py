"""Masked importance sampling (Liu, Li et al., 2025; 2512.23075): tokens whose ratio leaves the band leave the loss."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from strop.roles import Correction
from strop.train.arithmetic.ratios import FROZEN, check_policy, log_weights, needed
from strop.train.batch import Batch
from strop.train.needs import Need


@dataclass(frozen=True)
class Masked(Correction):
    """Weigh a token by ratio * [low <= ratio <= high] with ratio = target / behaviour, detached.

    A masked token keeps its place in the denominator, so the others do not grow.
    """

    low: float = 0.5  # a token below it gets no gradient
    high: float = 2.0  # a token above it gets no gradient
    target: str = "current"  # the policy that tokens are weighed to

    def __post_init__(self) -> None:
        check_policy(self.target, ("current", *FROZEN), self)

    @property
    def needs(self) -> frozenset[Need]:
        return needed(self.target)

    def __call__(self, logprobs: Tensor, batch: Batch) -> Tensor:
        ratio = log_weights(self.target, batch, logprobs).exp()  # [T]
        return ratio.where((ratio >= self.low) & (ratio <= self.high), ratio.new_zeros(()))
