"""KL penalty to a reference policy: Schulman's three sampled estimators of KL(policy || reference) ("Approximating KL
Divergence", 2020), as a loss.

With d = log(policy / reference) of the sampled token and samples of the policy:
  k1 = d               value unbiased; as a loss its expected gradient is 0, so it only measures
  k2 = d^2 / 2         value biased; its expected gradient is exactly that of KL(policy || reference)
  k3 = exp(-d) - 1 + d value unbiased and never negative; its expected gradient is that of KL(reference || policy)
For an unbiased gradient of the reverse KL take k2, or k1 inside the reward.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError, nearest
from strop.roles import Loss
from strop.training.arithmetic.ratios import FROZEN, check_policy
from strop.training.batch import Batch, Output
from strop.training.requirements import Logprobs, Need
from strop.types import Metrics

_ESTIMATORS = ("k1", "k2", "k3")


@dataclass(frozen=True)
class Kl(Loss):
    """KL penalty to the reference, or to another policy; the defaults are GRPO's (2402.03300)."""

    estimator: str = "k3"  # k1, k2 or k3
    weight: float = 0.04  # weight of this loss among others
    policy: str = "reference"  # the other policy; proximal: the weights before the step

    scope: ClassVar[str] = "rollout"

    def __post_init__(self) -> None:
        check_policy(self.policy, ("reference", *FROZEN), self)
        if self.estimator not in _ESTIMATORS:
            raise ConfigurationError(f"Kl has no estimator {self.estimator!r}: {nearest(self.estimator, _ESTIMATORS)}")

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset({Logprobs(self.policy)})

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        distance = batch.log_ratio(output.logprobs, batch.logprobs_of(self.policy))  # [T]
        loss = torch.where(batch.trainable, self._estimate(distance), 0.0)
        return loss, {f"{self.policy}_kl": batch.metric(distance)}  # k1: its mean is the KL whatever is minimized

    def _estimate(self, distance: Tensor) -> Tensor:
        if self.estimator == "k1":
            return distance
        if self.estimator == "k2":
            return distance.square() / 2
        return torch.expm1(-distance) + distance
