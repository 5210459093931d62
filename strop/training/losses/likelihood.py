"""Supervised fine-tuning: the negative log-likelihood of completion tokens, of any origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.roles import Loss
from strop.training.batch import Batch, Output
from strop.types import Metrics


@dataclass(frozen=True)
class Likelihood(Loss):
    """Negative log-likelihood of the tokens; advantages are not used."""

    weight: float = 1.0

    scope: ClassVar[str] = "rollout"

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        loss = torch.where(batch.trainable, -output.logprobs, 0.0)  # [T]
        return loss, {"nll": batch.metric(loss)}
