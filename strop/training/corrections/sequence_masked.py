"""Masked importance sampling of whole rollouts: one that became too likely leaves the loss with all its tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from strop.training.arithmetic.ratios import sequence_log_weights
from strop.training.arithmetic.targeted import Targeted
from strop.training.batch import Batch


@dataclass(frozen=True)
class SequenceMasked(Targeted):
    """Weigh every token of a rollout by product * [product <= cap], product = that of its tokens' ratios, detached.

    Products grow with length, so this removes long rollouts first: watch the `correction` metric.
    """

    cap: float = 8.0  # a rollout of larger weight counts nothing
    target: str = "current"  # the policy that tokens are weighed to

    def __call__(self, logprobs: Tensor, batch: Batch) -> Tensor:
        total = sequence_log_weights(self.target, batch, logprobs)  # [A]
        kept = total <= math.log(self.cap)  # in log space: the product itself may not be finite
        return batch.on_tokens(total.where(kept, total.new_full((), -math.inf)).exp())  # [T]
