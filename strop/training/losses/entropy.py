"""An entropy bonus (Williams and Peng, 1991), so that the policy keeps exploring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.roles import Loss
from strop.training.batch import Batch, Output
from strop.types import Metrics


@dataclass(frozen=True)
class Entropy(Loss):
    """Reward an undecided next token, at the contexts that were visited; the default is PPO's 0.01.

    The gradient leaves out how the policy changes which contexts are visited.
    """

    weight: float = 0.01

    scope: ClassVar[str] = "rollout"

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        loss = torch.where(batch.trainable, -output.entropy, 0.0)  # [T]
        return loss, {"entropy": -batch.metric(loss)}
