"""Identity preference optimization (IPO, 2310.12036): a preferred margin to be reached, not to be pushed for ever.

Papers: ipo
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.roles import Loss
from strop.training.arithmetic.siblings import margins, num_tokens, sides
from strop.training.batch import Batch, Output
from strop.training.requirements import Logprobs, Need
from strop.types import Metrics


@dataclass(frozen=True)
class Ipo(Loss):
    """(h - 1 / (2 tau))^2, h = log(policy / reference) of the chosen rollout minus that of the rejected one.

    The paper's h is a sum over tokens; `is_averaged` divides it by the length, as its authors later did. A group is one
    pair and every token carries the pair's loss, for the sequence-mean reduction. A tie has no loss.
    """

    tau: float = 0.1  # the margin to reach is 1 / (2 tau)
    is_averaged: bool = False  # log-ratios per token
    weight: float = 1.0

    needs: ClassVar[frozenset[Need]] = frozenset({Logprobs("reference")})
    scope: ClassVar[str] = "group"

    def __post_init__(self) -> None:
        if self.tau <= 0:
            raise ConfigurationError(f"Ipo needs tau > 0, got {self.tau}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        gains = batch.per_rollout(batch.log_ratio(output.logprobs, batch.logprobs_of("reference")))  # [A]
        gains = gains / num_tokens(batch, output.logprobs) if self.is_averaged else gains
        margin = margins(gains, batch, self)[batch.groups]  # [A]
        each = torch.where(sides(batch, self) != 0, (margin - 1 / (2 * self.tau)).square(), 0.0)
        loss = torch.where(batch.trainable, batch.on_tokens(each), 0.0)
        return loss, {"margin": batch.metric(batch.on_tokens(margin))}
