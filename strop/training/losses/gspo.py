"""GSPO (Zheng et al., 2507.18071): one ratio per rollout, the geometric mean of its tokens', clipped as a whole.

Papers: gspo
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.roles import Loss
from strop.training.batch import Batch, Output
from strop.types import Metrics


@dataclass(frozen=True)
class Gspo(Loss):
    """Clip whole rollouts instead of tokens; belongs with a sequence-mean reduction.

    s = exp(mean_t log ratio_t). Each token carries sg(s) * ratio_t / sg(ratio_t): the value of s and, through
    its own log-probability, the gradient of s once a rollout's tokens are averaged. A multi-turn rollout is
    one sequence. The bounds are the paper's; they are small because s is a mean over tokens.
    """

    low: float = 3e-4  # the lower bound of a ratio is 1 - low
    high: float = 4e-4  # the upper bound of a ratio is 1 + high
    weight: float = 1.0  # weight of this loss among others

    scope: ClassVar[str] = "rollout"
    contains_ratio: ClassVar[bool] = True  # a correction on top would count it twice
    needs_distance: ClassVar[bool] = True

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        log_ratio = batch.log_ratio(output.logprobs, batch.behavior_logprobs)  # [T]
        num_tokens = batch.per_rollout(torch.ones_like(log_ratio)).clamp(min=1)  # [A]
        sequence = batch.on_tokens(batch.per_rollout(log_ratio.detach()) / num_tokens)  # [T], log s
        ratio = (sequence + log_ratio - log_ratio.detach()).exp()  # [T]
        free = ratio * batch.advantages  # [T]
        objective = torch.minimum(free, ratio.clamp(1 - self.low, 1 + self.high) * batch.advantages)  # [T]
        loss = torch.where(batch.trainable, -objective, 0.0)
        return loss, {
            "clipped_share": batch.metric((objective != free).to(loss.dtype)),
            "ratio": batch.metric(ratio),
            "kl": batch.metric(log_ratio.exp() - 1 - log_ratio),  # k3 of KL(behaviour || policy)
        }
