"""Exact KL to another policy at every visited context, over the whole vocabulary, in either direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError, nearest
from strop.roles import Loss
from strop.training.batch import Batch, Output
from strop.training.requirements import Logits, Need
from strop.types import Metrics

_DIRECTIONS = ("reverse", "forward")


@dataclass(frozen=True)
class ExactKl(Loss):
    """Reverse: KL(policy || other), mode-seeking; forward: KL(other || policy), mode-covering.

    No sampling noise, at the cost of a second pass over the output layer. As with every penalty per token, the gradient
    leaves out how the policy changes which contexts are visited. `other` is reference, proximal or a model's folder.
    """

    direction: str = "reverse"  # reverse or forward
    other: str = "reference"  # reference, proximal or a model's folder
    weight: float = 0.04

    scope: ClassVar[str] = "rollout"

    def __post_init__(self) -> None:
        if self.direction not in _DIRECTIONS:
            raise ConfigurationError(
                f"ExactKl has no direction {self.direction!r}: {nearest(self.direction, _DIRECTIONS)}"
            )

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset({Logits(self.other)})

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        divergence = output.over_both(_reverse if self.direction == "reverse" else _forward, self.other)  # [T]
        loss = torch.where(batch.trainable, divergence, 0.0)
        return loss, {f"{self.direction}_kl": batch.metric(divergence)}


def _reverse(logits: Tensor, others: Tensor, tokens: Tensor) -> Tensor:
    """[C, V], [C, V] -> [C]."""
    own, other = logits.log_softmax(-1), others.log_softmax(-1)
    return (own.exp() * (own - other)).sum(-1)


def _forward(logits: Tensor, others: Tensor, tokens: Tensor) -> Tensor:
    """[C, V], [C, V] -> [C]."""
    own, other = logits.log_softmax(-1), others.log_softmax(-1)
    return (other.exp() * (other - own)).sum(-1)
