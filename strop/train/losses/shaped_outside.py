"""A loss for attempts that hold others' words (LUFFY's shaping, used by SCOPE): those count by p / (p + gamma).

The policy gradient of a token that nobody sampled has no ratio; p / (p + gamma) stands for it, steepest where p is
small, and bounded. No clip is on it.
Papers: scope
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.roles import Loss
from strop.train.batch import Batch, Output
from strop.types import Metrics


@dataclass(frozen=True)
class ShapedOutside(Loss):
    """What `inner` says at sampled tokens, -A * p / (p + gamma) at those that no weights wrote (version -1).

    The gradient of the latter is that of -A * log p, times p * gamma / (p + gamma)^2.
    """

    inner: Loss
    gamma: float = 0.1  # the probability at which an outside token counts most

    scope: ClassVar[str] = "attempt"

    def __post_init__(self) -> None:
        if self.gamma <= 0 or self.inner.scope != "attempt" or self.inner.covers != "written":
            raise ConfigurationError(
                f"ShapedOutside needs gamma > 0 and a loss on written tokens of single attempts, got {self}"
            )

    @property
    def weight(self) -> float:
        return self.inner.weight

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        is_outside = batch.trainable & (batch.versions < 0)  # [T]
        own = replace(batch, trainable=batch.trainable & ~is_outside)
        inner, figures = self.inner(output, own)
        policy = output.logprobs.exp()
        shaped = policy / (policy + self.gamma)  # [T]
        loss = torch.where(is_outside, -batch.advantages * shaped, inner.where(own.trainable, inner.new_zeros(())))
        told = {"outside_share": is_outside.to(loss.dtype), "outside": shaped.where(is_outside, shaped.new_zeros(()))}
        return loss, figures | {name: batch.figure(values) for name, values in told.items()}
