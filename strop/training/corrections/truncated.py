"""Truncated importance sampling (Ionides, 2008; Yao et al., 2025): the ratio, but never above a cap."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from strop.training.arithmetic.ratios import log_weights
from strop.training.arithmetic.targeted import Targeted
from strop.training.batch import Batch


@dataclass(frozen=True)
class Truncated(Targeted):
    """Weigh a token by min(target / behaviour, cap), detached.

    With the target `current`, the weights being trained, it covers both staleness and a mismatch between engine and
    trainer, and belongs with losses that have no ratio of their own (Reinforce). With a frozen target it belongs with
    a loss anchored there (Clip).
    """

    cap: float = 2.0  # largest weight
    target: str = "current"  # the policy that tokens are weighed to

    def __call__(self, logprobs: Tensor, batch: Batch) -> Tensor:
        return log_weights(self.target, batch, logprobs).exp().clamp(max=self.cap)  # [T]
