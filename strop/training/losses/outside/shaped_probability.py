"""Policy gradient on a teacher's tokens (AMPO, 2510.02227; SCOPE): a bounded weight in place of a ratio.

Papers: ampo, scope
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.roles import Loss
from strop.training.batch import Batch, Output
from strop.types import Metrics


@dataclass(frozen=True)
class ShapedProbability(Loss):
    """-A * p / (p + shift), p the policy's probability of a token: no old policy, no clipping.

    The gradient is that of -A * log p, times p * shift / (p + shift)^2: largest for tokens with p near `shift`.
    """

    shift: float = 0.1  # probability at which a token's weight is one half
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.shift <= 0:
            raise ConfigurationError(f"ShapedProbability needs a shift > 0, got {self.shift}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        policy = output.logprobs.exp()  # [T]
        shaped = policy / (policy + self.shift)
        loss = torch.where(batch.trainable, -batch.advantages * shaped, 0.0)
        return loss, {"shaped": batch.metric(shaped)}
