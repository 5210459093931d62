"""Guide's loss on hinted attempts (2506.13923): a bounded importance weight in place of a clip.

The ratio is of the policy without the hint to the policy that read it, so that it starts far from 1.
Reading: its bound is the quantile over the attempt's own tokens, which is the release's with one attempt in each
micro-batch, and does not depend on how a step is split.
Papers: guide
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.roles import Loss
from strop.training.batch import Batch, Output
from strop.types import Metrics


@dataclass(frozen=True)
class ShapedRatio(Loss):
    """-A * r / (r + g): r is policy / behaviour, g the `quantile` of r over the attempt's tokens, at least `least`.

    The gradient is that of -A * log policy, times r * g / (r + g)^2: at most 1/4, for tokens with r near g.
    """

    quantile: float = 0.9  # of an attempt's ratios, which becomes g
    least: float = 1e-4  # bound of g from below
    weight: float = 1.0

    contains_ratio: ClassVar[bool] = True  # a correction on top would count it twice
    corrects: ClassVar[bool] = True  # it weighs by the sampling distribution, which truncation would change

    def __post_init__(self) -> None:
        if not 0 <= self.quantile <= 1 or self.least <= 0:
            raise ConfigurationError(
                f"ShapedRatio needs 0 <= quantile <= 1 and least > 0, got {self.quantile} and {self.least}"
            )

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        ratio = batch.log_ratio(output.logprobs, batch.behavior_logprobs).exp()  # [T]
        bound = batch.on_tokens(self._bounds(ratio.detach(), batch))  # [T]
        shaped = ratio / (ratio + bound)
        loss = torch.where(batch.trainable, -batch.advantages * shaped, 0.0)
        return loss, {"ratio": batch.figure(ratio), "shaped": batch.figure(shaped)}

    def _bounds(self, ratio: Tensor, batch: Batch) -> Tensor:
        """Of each attempt; of one without a token it is never used: [A]."""
        bounds = ratio.new_ones(batch.num_attempts)
        for index in batch.attempts[batch.trainable].unique().tolist():  # type: ignore[no-untyped-call]
            own = ratio[batch.trainable & (batch.attempts == index)]
            bounds[index] = own.quantile(self.quantile).clamp(min=self.least)
        return bounds
