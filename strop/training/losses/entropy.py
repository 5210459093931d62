"""Entropy terms: a bonus, and a bonus within a band."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.roles import Loss
from strop.training.arithmetic.siblings import num_tokens
from strop.training.batch import Batch, Output
from strop.types import Metrics

# An entropy bonus (Williams and Peng, 1991), so that the policy keeps exploring.


@dataclass(frozen=True)
class Entropy(Loss):
    """Entropy of the next token at visited contexts, as a bonus; the default weight is PPO's 0.01.

    The gradient leaves out how the policy changes which contexts are visited.
    """

    weight: float = 0.01

    scope: ClassVar[str] = "rollout"

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        loss = torch.where(batch.trainable, -output.entropy, 0.0)  # [T]
        return loss, {"entropy": -batch.metric(loss)}


# Entropy band per rollout: a bonus below it, a penalty above it, nothing within.


@dataclass(frozen=True)
class EntropyClamp(Loss):
    """max(low - H, 0) + max(H - high, 0) of the rollout's mean entropy H, in nats, on every token."""

    low: float = 0.2  # entropy below it is rewarded
    high: float = 2.0  # entropy above it is penalized
    weight: float = 0.01

    scope: ClassVar[str] = "rollout"

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high:
            raise ConfigurationError(f"EntropyClamp needs 0 <= low <= high, got {self.low} and {self.high}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        mean = batch.per_rollout(output.entropy) / num_tokens(batch, output.entropy)  # [A]
        outside = (self.low - mean).clamp(min=0) + (mean - self.high).clamp(min=0)
        loss = torch.where(batch.trainable, batch.on_tokens(outside), 0.0)
        return loss, {"outside_band": batch.metric(batch.on_tokens((outside > 0).to(loss.dtype)))}
