"""SAPO's soft clip (2511.20347): a smooth gate in place of PPO's clipping bounds.

Papers: sapo-soft
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.roles import Loss
from strop.training.batch import Batch, Output
from strop.types import Metrics


@dataclass(frozen=True)
class Sapo(Loss):
    """-(4 / t) s(t (r - 1)) A, r = policy / behaviour, t by the sign of A.

    The gradient is that of r A times 4 s (1 - s): 1 at r = 1, falling off on both sides, faster for A < 0.
    """

    rising: float = 1.0  # t where A > 0
    falling: float = 1.05  # t where A <= 0
    weight: float = 1.0

    scope: ClassVar[str] = "rollout"
    contains_ratio: ClassVar[bool] = True  # a correction on top would count it twice
    needs_distance: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (self.rising > 0 and self.falling > 0):
            raise ConfigurationError(f"Sapo needs temperatures > 0, got {self.rising} and {self.falling}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        ratio = batch.log_ratio(output.logprobs, batch.behavior_logprobs).exp()  # [T]
        slope = torch.where(batch.advantages > 0, self.rising, self.falling).to(ratio.dtype)
        gate = torch.sigmoid(slope * (ratio - 1))
        loss = torch.where(batch.trainable, -4 / slope * gate * batch.advantages, 0.0)
        return loss, {"gate": batch.metric(4 * gate * (1 - gate)), "ratio": batch.metric(ratio)}
