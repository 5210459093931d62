"""PPO's clipped surrogate (Schulman et al., 1707.06347), with DAPO's two bounds and a dual clip (1912.09729)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.roles import Metrics, Output
from strop.types import Batch


@dataclass(frozen=True)
class Clip:
    """Stop pushing a token once its probability has moved past the bounds in the pushed direction.

    The ratio is taken against the policy that sampled the token. It already is the importance weight, so a
    correction must not be applied on top. PPO and GRPO: 0.2 and 0.2; DAPO: 0.2 and 0.28.
    """

    low: float = 0.2
    high: float = 0.2
    dual: float | None = None  # > 1: for A < 0 the loss is at most dual * |A|; without it that side is unbounded
    weight: float = 1.0

    needs: ClassVar[frozenset[str]] = frozenset()
    scope: ClassVar[str] = "attempt"
    contains_ratio: ClassVar[bool] = True  # a correction on top would count it twice

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        log_ratio = batch.log_ratio(output.logprobs, batch.behavior_logprobs)  # [T]
        ratio = log_ratio.exp()  # [T]
        free = ratio * batch.advantages  # [T]
        objective = torch.minimum(free, ratio.clamp(1 - self.low, 1 + self.high) * batch.advantages)  # [T]
        if self.dual is not None:
            floor = torch.maximum(objective, self.dual * batch.advantages)
            objective = torch.where(batch.advantages < 0, floor, objective)
        loss = torch.where(batch.trainable, -objective, 0.0)
        return loss, {
            "clipped_share": batch.figure((objective != free).to(loss.dtype)),
            "ratio": batch.figure(ratio),
            "kl": batch.figure(ratio - 1 - log_ratio),  # k3 of KL(behaviour || policy)
        }
