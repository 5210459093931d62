"""SimPO (2405.14734): preferences by mean log-probability, against a margin instead of a reference.

Papers: simpo
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from strop.roles import Loss
from strop.training.arithmetic.siblings import margins, num_tokens, sides
from strop.training.batch import Batch, Output
from strop.types import Metrics


@dataclass(frozen=True)
class SimPo(Loss):
    """-log s(beta * (mean log policy of the chosen rollout - that of the rejected one) - gamma).

    A group is one pair and every token carries the pair's loss, for the sequence-mean reduction. A tie has no loss.
    """

    beta: float = 2.0  # scale of mean log-probabilities
    gamma: float = 1.0  # the margin to reach
    weight: float = 1.0

    scope: ClassVar[str] = "group"

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        mean = batch.per_rollout(output.logprobs) / num_tokens(batch, output.logprobs)  # [A]
        margin = self.beta * margins(mean, batch, self)[batch.groups]  # [A]
        each = torch.where(sides(batch, self) != 0, functional.softplus(self.gamma - margin), 0.0)
        loss = torch.where(batch.trainable, batch.on_tokens(each), 0.0)
        return loss, {"margin": batch.metric(batch.on_tokens(margin))}
