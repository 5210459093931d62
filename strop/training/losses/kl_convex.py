"""ReMix's leash (2507.06892): a convex combination of the KL to the reference and that to the policy before the step.

Reading: the precedent policy is that of the weights before the step; both are k3 on sampled tokens, as in GRPO.
Papers: remix
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.roles import Loss
from strop.training.batch import Batch, Output
from strop.training.requirements import Logprobs, Need
from strop.types import Metrics

_EVERY = 10  # versions between two falls of the share
_FALL = 0.1
_FLOOR = 0.5


@dataclass(frozen=True)
class KlConvex(Loss):
    """share * KL(policy || reference) + (1 - share) * KL(policy || before); the share is 1 and falls to 1/2."""

    hold: int = 50  # versions with a share of 1; then it falls by 0.1 every 10
    weight: float = 0.001  # of this loss beside others

    needs: ClassVar[frozenset[Need]] = frozenset({Logprobs("reference"), Logprobs("proximal")})

    def __post_init__(self) -> None:
        if self.hold < 0:
            raise ConfigurationError(f"KlConvex needs hold >= 0, got {self.hold}")

    def share(self, version: int) -> float:
        """Of the reference."""
        return max(1 - _FALL * math.ceil(max(version - self.hold, 0) / _EVERY), _FLOOR)

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        share = self.share(batch.version)
        far = batch.log_ratio(output.logprobs, batch.logprobs_of("reference"))  # [T]
        near = batch.log_ratio(output.logprobs, batch.logprobs_of("proximal"))  # [T]
        loss = torch.where(batch.trainable, share * _k3(far) + (1 - share) * _k3(near), 0.0)
        return loss, {
            "reference_kl": batch.figure(far),
            "reference_share": batch.figure(torch.full_like(far, share)),
        }


def _k3(distance: Tensor) -> Tensor:
    return torch.expm1(-distance) + distance
