"""The veto: one token the target all but rules out removes its whole rollout, whatever the other weights say."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from torch import Tensor

from strop.roles import Correction
from strop.training.arithmetic.ratios import FROZEN, check_policy, log_weights, needed
from strop.training.batch import Batch
from strop.training.requirements import Need


@dataclass(frozen=True)
class Veto(Correction):
    """Weights of `inner`, but 0 for every token of a rollout that has one with target / behaviour < floor."""

    inner: Correction
    floor: float = 1e-4  # one token below it, and the rollout counts nothing
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
