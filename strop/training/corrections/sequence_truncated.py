"""Truncated importance sampling of whole rollouts: unbiased where the cap does not bind, as no token's own ratio is."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from strop.training.arithmetic.ratios import sequence_log_weights
from strop.training.arithmetic.targeted import Targeted
from strop.training.batch import Batch


@dataclass(frozen=True)
class SequenceTruncated(Targeted):
    """Weigh every token of a rollout by min(product of its tokens' ratios, cap), detached.

    The product explodes with length (1.1 per token is 13,780 at 100 tokens). The default cap is VCPO's (2602.17616).
    """

    cap: float = 8.0  # largest weight of a rollout
    target: str = "current"  # the policy that tokens are weighed to

    def __call__(self, logprobs: Tensor, batch: Batch) -> Tensor:
        held = sequence_log_weights(self.target, batch, logprobs).clamp(
            max=math.log(self.cap)
        )  # [A]; exp cannot overflow
        return batch.on_tokens(held.exp())  # [T]
