"""Odds-ratio preference optimization (ORPO, 2403.07691): imitate the chosen rollout and raise its odds.

Papers: orpo
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
class Orpo(Loss):
    """-log policy per token of the chosen rollout - odds * log s(log odds_c - log odds_r), odds = P / (1 - P).

    P = exp(mean log-probability per token); no reference. Every token carries its pair's loss. The chosen rollout alone
    carries the likelihood term, doubled, because the sequence-mean reduction halves it. A tie has no loss.
    """

    odds: float = 0.1  # weight of the odds beside the likelihood
    weight: float = 1.0

    scope: ClassVar[str] = "group"

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        mean = batch.per_rollout(output.logprobs) / num_tokens(batch, output.logprobs)  # [A]
        margin = margins(_log_odds(mean), batch, self)[batch.groups]  # [A]
        side = sides(batch, self).to(mean.dtype)
        chosen, is_pair = (side > 0).to(mean.dtype), (side != 0).to(mean.dtype)
        each = -2 * chosen * mean + self.odds * is_pair * functional.softplus(-margin)
        loss = torch.where(batch.trainable, batch.on_tokens(each), 0.0)
        return loss, {"margin": batch.metric(batch.on_tokens(margin))}


def _log_odds(logprob: Tensor) -> Tensor:
    """log(P / (1 - P)), with 1 - P = -expm1(log P); held where P is 1: [A]."""
    below = logprob.clamp(max=-1e-6)
    return below - torch.log(-torch.expm1(below))
