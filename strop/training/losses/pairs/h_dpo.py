"""H-DPO (2411.07595): DPO whose policy side is scaled, so that the optimum is sharper or flatter than DPO's.

Papers: h-dpo
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from strop.roles import Loss
from strop.training.arithmetic.siblings import margins
from strop.training.batch import Batch, Output
from strop.training.requirements import Logprobs, Need
from strop.types import Metrics


@dataclass(frozen=True)
class HDpo(Loss):
    """-log sigmoid(beta * h), h = (alpha * log policy - log reference) of the chosen attempt minus the rejected one's.

    The optimum is ~ reference^(1 / alpha) * exp(reward / (alpha * beta)): alpha < 1 sharpens, 1 is DPO. A group is one
    pair and every token carries the pair's loss, for the sequence-mean reduction.
    """

    alpha: float = 0.9  # below 1 the optimum is sharper than DPO's
    beta: float = 0.1  # of the reward that the log-ratio stands for
    weight: float = 1.0

    needs: ClassVar[frozenset[Need]] = frozenset({Logprobs("reference")})
    scope: ClassVar[str] = "group"

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        distance = batch.log_ratio(output.logprobs, batch.logprobs_of("reference"))
        if self.alpha != 1:
            distance = distance + (self.alpha - 1) * output.logprobs
        margin = self.beta * margins(batch.per_attempt(distance), batch, self)  # [G]
        margin = batch.on_tokens(margin[batch.groups])  # [T]
        loss = torch.where(batch.trainable, functional.softplus(-margin), 0.0)
        return loss, {"preferred_share": batch.figure((margin > 0).to(loss.dtype)), "margin": batch.figure(margin)}
