"""AIPO of LlamaRL (2505.24034): the policy gradient, weighed by the ratio to the sampler, capped from above only.

Papers: llamarl
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
class Aipo(Loss):
    """min(policy / behaviour, cap) * A * grad log policy: no lower bound, no anchor.

    Detached, a capped token keeps its gradient with the weight `cap`. Otherwise the loss is -min(ratio, cap) * A
    itself, as in two open trainers, and a capped token has no gradient for either sign of A. Caps of 2 to 10 are in
    use.
    """

    cap: float = 8.0  # largest importance weight
    is_detached: bool = True  # a capped token keeps its gradient
    weight: float = 1.0

    scope: ClassVar[str] = "rollout"
    contains_ratio: ClassVar[bool] = True  # a correction on top would count it twice
    needs_distance: ClassVar[bool] = True
    corrects: ClassVar[bool] = True  # it weighs by the sampling distribution, which truncation would change

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        current = output.logprobs  # [T]
        ratio = batch.log_ratio(current, batch.behavior_logprobs).exp()  # [T]
        held = ratio.clamp(max=self.cap)  # [T]
        gain = held.detach() * current if self.is_detached else held
        loss = torch.where(batch.trainable, -batch.advantages * gain, 0.0)
        return loss, {"capped_share": batch.metric((ratio > self.cap).to(loss.dtype))}
