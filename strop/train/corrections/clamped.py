"""Clamped importance sampling: the ratio held in a band, so that no token is lost and none counts too much."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from strop.roles import Correction
from strop.train.arithmetic.ratios import FROZEN, check_policy, log_weights, needed
from strop.train.batch import Batch
from strop.train.needs import Need


@dataclass(frozen=True)
class Clamped(Correction):
    """Weigh a token by target / behaviour held within [low, high], detached."""

    low: float = 0.5  # least weight
    high: float = 2.0  # largest weight
    target: str = "current"  # the policy that tokens are weighed to

    def __post_init__(self) -> None:
        check_policy(self.target, ("current", *FROZEN), self)

    @property
    def needs(self) -> frozenset[Need]:
        return needed(self.target)

    def __call__(self, logprobs: Tensor, batch: Batch) -> Tensor:
        return log_weights(self.target, batch, logprobs).exp().clamp(self.low, self.high)  # [T]
