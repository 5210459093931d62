"""Kahneman-Tversky optimization (KTO, 2402.01306): single desirable or undesirable rollouts, against a KL baseline.

The paper estimates the KL to the reference with mismatched pairs because its data is not on-policy. Rollouts
here are, so the mean log-ratio of the siblings is an unbiased estimate of it, and no further forward pass is needed.

Papers: kto
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.roles import Loss
from strop.training.arithmetic.siblings import group_mean, is_right
from strop.training.batch import Batch, Output
from strop.training.requirements import Logprobs, Need
from strop.types import Metrics


@dataclass(frozen=True)
class Kto(Loss):
    """desirable * (1 - s(beta (g - z))) or undesirable * (1 - s(beta (z - g))), g = log(policy / reference), z >= 0.

    A rollout is desirable if its success reaches the threshold. Every token has its rollout's whole loss.
    """

    beta: float = 0.1  # scale of the implicit reward log(policy / reference)
    desirable: float = 1.0  # weight of desirable rollouts
    undesirable: float = 1.0  # weight of undesirable ones
    threshold: float = 1.0  # least success of a desirable rollout
    weight: float = 1.0

    needs: ClassVar[frozenset[Need]] = frozenset({Logprobs("reference")})
    scope: ClassVar[str] = "group"

    needs_success: ClassVar[bool] = True

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        gains = batch.per_rollout(batch.log_ratio(output.logprobs, batch.logprobs_of("reference")))  # [A]
        expected = group_mean(gains.detach(), batch).clamp(min=0)  # [A]
        good = is_right(batch, self.threshold)
        side = torch.where(good, 1.0, -1.0).to(gains.dtype)
        weights = torch.where(good, self.desirable, self.undesirable).to(gains.dtype)
        each = weights * torch.sigmoid(self.beta * side * (expected - gains))  # 1 - s(x) = s(-x)
        loss = torch.where(batch.trainable, batch.on_tokens(each), 0.0)
        return loss, {"expected_kl": batch.metric(batch.on_tokens(expected))}
