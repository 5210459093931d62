"""Plain policy gradient (Williams, 1992): log-probability times advantage, no ratio and no clipping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.roles import Loss
from strop.training.batch import Batch, Output
from strop.types import Metrics


@dataclass(frozen=True)
class Reinforce(Loss):
    """REINFORCE loss -A * log policy; off-policy it needs a correction to stay unbiased."""

    weight: float = 1.0

    scope: ClassVar[str] = "rollout"
    is_on_policy: ClassVar[bool] = True  # tokens of other weights bias it, unless a correction weighs them

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        log_ratio = batch.log_ratio(output.logprobs, batch.behavior_logprobs)  # [T]
        ratio = log_ratio.exp()  # [T]
        loss = torch.where(batch.trainable, -batch.advantages * output.logprobs, 0.0)
        # k3 of KL(behaviour || policy)
        return loss, {"ratio": batch.metric(ratio), "kl": batch.metric(ratio - 1 - log_ratio)}
