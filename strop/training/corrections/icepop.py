"""IcePop (Ring-1T, 2510.18855): calibrate the gap between training and inference engine, discard what leaves the band.

Papers: ring-1t
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from strop.roles import Correction
from strop.training.arithmetic.ratios import FROZEN, check_policy, log_weights, needed
from strop.training.batch import Batch
from strop.training.requirements import Need


@dataclass(frozen=True)
class IcePop(Correction):
    """Weigh a token by k * [low <= k <= high], k = trainer's / engine's probability under the weights that sampled it.

    Both sides of the band get exactly no gradient, and keep their place in the denominator. `old` is those weights at
    any lag; `proximal`, the weights before the step, is the same at lag 0 and else takes staleness for a mismatch.
    It belongs with a Clip anchored at the same target. [0.5, 2] was unstable in the paper, [0.4, 5] was not.
    """

    low: float = 0.5  # a token below it gets no gradient
    high: float = 5.0  # a token above it gets no gradient
    target: str = "old"  # the policy that tokens are weighed to

    def __post_init__(self) -> None:
        check_policy(self.target, FROZEN, self)

    @property
    def needs(self) -> frozenset[Need]:
        return needed(self.target)

    def __call__(self, logprobs: Tensor, batch: Batch) -> Tensor:
        gap = log_weights(self.target, batch, logprobs).exp()  # [T]
        return gap.where((gap >= self.low) & (gap <= self.high), gap.new_zeros(()))
