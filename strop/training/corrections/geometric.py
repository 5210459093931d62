"""Geometric filter: a rollout is kept only if its tokens' mean log-ratio is near 0, independent of its length."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from strop.roles import Correction
from strop.training.arithmetic.ratios import FROZEN, check_policy, needed, sequence_log_weights
from strop.training.batch import Batch
from strop.training.requirements import Need


@dataclass(frozen=True)
class Geometric(Correction):
    """Keep a rollout iff low <= g <= high, g = geometric mean of its ratios; kept tokens have weight 1, or `inner`'s.

    The filter does not favour short rollouts, but a long one may have a large total ratio. The band is verl's.
    """

    low: float = 0.999  # least mean ratio of a rollout that is kept
    high: float = 1.001  # largest mean ratio of a rollout that is kept
    target: str = "current"  # the policy that tokens are weighed to
    inner: Correction | None = None

    def __post_init__(self) -> None:
        check_policy(self.target, ("current", *FROZEN), self)

    @property
    def needs(self) -> frozenset[Need]:
        return needed(self.target) | (frozenset() if self.inner is None else self.inner.needs)

    def __call__(self, logprobs: Tensor, batch: Batch) -> Tensor:
        total = sequence_log_weights(self.target, batch, logprobs)  # [A]
        mean = (total / batch.per_rollout(torch.ones_like(logprobs)).clamp(min=1)).exp()  # [A]
        kept = ((mean >= self.low) & (mean <= self.high)).to(mean.dtype)  # [A]
        weights = torch.ones_like(logprobs) if self.inner is None else self.inner(logprobs, batch)
        return batch.on_tokens(kept) * weights  # [T]
