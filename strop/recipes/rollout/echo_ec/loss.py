"""ECHO's clipping (2602.02150): a narrower range for completions that ended with higher confidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.roles import Loss
from strop.training.batch import Batch, Output
from strop.training.top_k_stats import confidence
from strop.types import Metrics

_TAIL = 16  # tokens


@dataclass(frozen=True)
class ConfidentClip(Loss):
    """PPO's clipping to 1 +- e with e = least + (most - least) * sigmoid(sharpness * (1 - C)), one e per rollout.

    C is the mean over its last 16 tokens of the mean probability of the five likeliest tokens under the current policy.
    That mean is at most 0.2, so e hardly varies; the formula is the paper's.
    """

    least: float = 0.05  # e in the limit of high confidence
    most: float = 0.2  # e in the limit of low confidence
    sharpness: float = 4.0  # of the transition between them
    weight: float = 1.0  # of this loss relative to others

    contains_ratio: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.most:
            raise ConfigurationError(f"ConfidentClip needs 0 <= least <= most, got {self.least} and {self.most}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        width = self._widths(output.over_logits(confidence).detach(), batch)  # [T]
        ratio = batch.log_ratio(output.logprobs, batch.behavior_logprobs).exp()  # [T]
        free = ratio * batch.advantages
        held = torch.minimum(torch.maximum(ratio, 1 - width), 1 + width) * batch.advantages
        objective = torch.minimum(free, held)
        loss = torch.where(batch.trainable, -objective, 0.0)
        metrics = {"clipped_share": batch.metric((objective != free).to(loss.dtype)), "clip_width": batch.metric(width)}
        return loss, metrics

    def _widths(self, confidences: Tensor, batch: Batch) -> Tensor:
        tail = _is_tail(batch).to(confidences.dtype)
        sure = batch.per_rollout(confidences * tail) / batch.per_rollout(tail).clamp(min=1)  # [A]
        return batch.on_tokens(self.least + (self.most - self.least) * torch.sigmoid(self.sharpness * (1 - sure)))


def _is_tail(batch: Batch) -> Tensor:
    """The last tokens of each rollout: [T] bool."""
    before = batch.trainable.to(torch.int64).cumsum(0)  # [T], tokens up to here
    last = before.new_zeros(batch.num_rollouts).scatter_reduce(0, batch.rollouts, before, "amax")  # [A]
    return batch.trainable & (batch.on_tokens(last) - before < _TAIL)
