"""One ratio per turn (RLinf-VLA, 2510.06710, where a turn is a chunk of actions): the product of its tokens' ratios.

Papers: rlinf-vla
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.roles import Loss
from strop.training.arithmetic.surrogate import clipped
from strop.training.arithmetic.turns import over_turns
from strop.training.batch import Batch, Output
from strop.types import Metrics


@dataclass(frozen=True)
class TurnClip(Loss):
    """PPO's surrogate of whole turns: s = exp(sum_t log ratio_t), clipped as `Clip` clips tokens.

    Every token carries its turn's whole loss, so that `EqualTurns` makes it a mean over turns. A turn of many tokens
    leaves the bounds far earlier than any of its tokens would. Credit is taken as constant within a turn.
    """

    low: float = 0.2  # the lower bound of a ratio is 1 - low
    high: float = 0.28  # the upper bound of a ratio is 1 + high
    dual: float | None = 3.0  # > 1: for A < 0 the loss is at most dual * |A|; without it that side is unbounded
    weight: float = 1.0  # of this loss beside others

    scope: ClassVar[str] = "attempt"
    contains_ratio: ClassVar[bool] = True  # a correction on top would count it twice

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        log_ratio = batch.log_ratio(output.logprobs, batch.behavior_logprobs)  # [T]
        turn = over_turns(log_ratio, batch).clamp(-20.0, 20.0)  # [T], log s
        ratio = turn.exp()  # [T]
        free = ratio * batch.advantages  # [T]
        objective = clipped(ratio, batch.advantages, self.low, self.high, self.dual)  # [T]
        loss = torch.where(batch.trainable, -objective, 0.0)
        return loss, {
            "clipped_share": batch.figure((objective != free).to(loss.dtype)),
            "ratio": batch.figure(ratio),
            "turn_drift": batch.figure(turn.abs()),
            "kl": batch.figure(log_ratio.exp() - 1 - log_ratio),  # k3 of KL(behaviour || policy)
        }
