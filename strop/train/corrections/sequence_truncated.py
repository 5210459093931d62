"""Truncated importance sampling of whole attempts: unbiased where the cap does not bind, as no token's own ratio is."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from strop.roles import Correction
from strop.train.arithmetic.ratios import FROZEN, check_policy, needed, sequence_log_weights
from strop.train.batch import Batch
from strop.train.needs import Need


@dataclass(frozen=True)
class SequenceTruncated(Correction):
    """Weigh every token of an attempt by min(product of its tokens' ratios, cap), detached.

    The product explodes with length (1.1 per token is 13,780 at 100 tokens). The default cap is VCPO's (2602.17616).
    """

    cap: float = 8.0  # largest weight of an attempt
    target: str = "current"  # the policy that tokens are weighed to

    def __post_init__(self) -> None:
        check_policy(self.target, ("current", *FROZEN), self)

    @property
    def needs(self) -> frozenset[Need]:
        return needed(self.target)

    def __call__(self, logprobs: Tensor, batch: Batch) -> Tensor:
        held = sequence_log_weights(self.target, batch, logprobs).clamp(
            max=math.log(self.cap)
        )  # [A]; exp cannot overflow
        return batch.on_tokens(held.exp())  # [T]
