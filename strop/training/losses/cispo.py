"""CISPO of MiniMax-M1 (2506.13585): the importance weight is clipped, not the update, so no token loses its gradient.

The paper sets no lower bound and does not print its upper one. The default cap on the weight, 1 + 4 = 5, is the
one ScaleRL (2510.13786) settled on; `low=1` means a lower bound of 0, that is none.

Papers: cispo
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.roles import Loss
from strop.training.batch import Batch, Output
from strop.types import Metrics


@dataclass(frozen=True)
class Cispo(Loss):
    """Policy gradient weighted by the detached ratio to the sampling policy, clamped to [1 - low, 1 + high].

    The weight already corrects for off-policy sampling: do not add a correction.
    """

    low: float = 1.0  # the least weight is 1 - low
    high: float = 4.0  # the largest weight is 1 + high
    weight: float = 1.0

    scope: ClassVar[str] = "rollout"
    contains_ratio: ClassVar[bool] = True  # a correction on top would count it twice
    needs_distance: ClassVar[bool] = True

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        log_ratio = batch.log_ratio(output.logprobs, batch.behavior_logprobs).detach()  # [T]
        ratio = log_ratio.exp()  # [T]
        held = ratio.clamp(1 - self.low, 1 + self.high)  # [T]
        loss = torch.where(batch.trainable, -held * batch.advantages * output.logprobs, 0.0)
        return loss, {
            "clipped_share": batch.metric((held != ratio).to(loss.dtype)),
            "ratio": batch.metric(ratio),
            "kl": batch.metric(ratio - 1 - log_ratio),  # k3 of KL(behaviour || policy)
        }
