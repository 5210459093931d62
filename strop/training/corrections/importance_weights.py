"""Importance-weight corrections: clamped, masked and truncated, per token or per sequence, and a veto."""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import log

from torch import Tensor

from strop.roles import Correction
from strop.training.arithmetic.ratios import FROZEN, Targeted, check_policy, log_weights, needed, sequence_log_weights
from strop.training.batch import Batch
from strop.training.requirements import Need

# Clamped importance sampling: the ratio is clamped to a band, so that every token keeps a bounded weight.


@dataclass(frozen=True)
class Clamped(Targeted):
    """Weigh a token by target / behaviour clamped to [low, high], detached."""

    low: float = 0.5  # least weight
    high: float = 2.0  # largest weight
    target: str = "current"  # the policy that tokens are weighed to

    def __call__(self, logprobs: Tensor, batch: Batch) -> Tensor:
        return log_weights(self.target, batch, logprobs).exp().clamp(self.low, self.high)  # [T]


# Masked importance sampling (Liu, Li et al., 2025; 2512.23075): tokens whose ratio leaves the band leave the loss.


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


# Masked importance sampling of whole rollouts: one whose ratio exceeds the cap leaves the loss with all its tokens.


@dataclass(frozen=True)
class SequenceMasked(Targeted):
    """Weigh every token of a rollout by product * [product <= cap], product = that of its tokens' ratios, detached.

    Products grow with length, so this removes long rollouts first: monitor the `correction` metric.
    """

    cap: float = 8.0  # largest ratio of a rollout that is kept
    target: str = "current"  # the policy that tokens are weighed to

    def __call__(self, logprobs: Tensor, batch: Batch) -> Tensor:
        total = sequence_log_weights(self.target, batch, logprobs)  # [A]
        kept = total <= math.log(self.cap)  # in log space: the product itself may not be finite
        return batch.on_tokens(total.where(kept, total.new_full((), -math.inf)).exp())  # [T]


# Truncated importance sampling of whole rollouts: unbiased below the cap, unlike a single token's ratio.


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


# Truncated importance sampling (Ionides, 2008; Yao et al., 2025): the ratio, but never above a cap.


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


# Veto: one token that the target policy finds nearly impossible removes its whole rollout.


@dataclass(frozen=True)
class Veto(Correction):
    """Weights of `inner`, but 0 for every token of a rollout that has one with target / behaviour < floor."""

    inner: Correction
    floor: float = 1e-4  # least ratio of a token before its rollout gets weight 0
    target: str = "current"  # the policy that tokens are weighed to

    def __post_init__(self) -> None:
        check_policy(self.target, ("current", *FROZEN), self)

    @property
    def needs(self) -> frozenset[Need]:
        return needed(self.target) | self.inner.needs

    def __call__(self, logprobs: Tensor, batch: Batch) -> Tensor:
        weights = self.inner(logprobs, batch)  # [T]
        refused = log_weights(self.target, batch, logprobs) < log(self.floor)  # [T]
        allowed = batch.per_rollout(refused.to(weights.dtype)) == 0  # [A]
        return weights * batch.on_tokens(allowed.to(weights.dtype))
