"""Supervised fine-tuning: the negative log-likelihood of what was written, whoever wrote it."""

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
    """Make the given tokens likelier; advantages play no part."""

    weight: float = 1.0

    scope: ClassVar[str] = "rollout"

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        loss = torch.where(batch.trainable, -output.logprobs, 0.0)  # [T]
        return loss, {"nll": batch.metric(loss)}
