"""HIR's loss (2302.05206): imitate what was written behind the instruction that it satisfied, and prefer that one.

Papers: hir
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from strop.errors import ConfigurationError
from strop.roles import Loss
from strop.training.arithmetic.siblings import is_right, num_tokens, per_group
from strop.training.batch import Batch, Output
from strop.types import Metrics, Origin


@dataclass(frozen=True)
class Hindsight(Loss):
    """Of a pair, the right attempt as it was asked or the wrong one behind the opposite instruction is the one meant.

    (1 - smoothing) * -log policy + smoothing * the mean of -log policy over the vocabulary, per token of the one meant,
    - entropy * H, and the cross-entropy, smoothed alike, of P / (P + P of the other), P = exp(mean log policy).
    The twin of a pair is REPLAYED. Pair it with a reduction that counts pairs, not their members.
    """

    smoothing: float = 0.2  # of the labels, of tokens and of the preference
    contrast: float = 1.0  # weight of the preference
    entropy: float = 0.001  # bonus for an undecided next token
    weight: float = 1.0

    scope: ClassVar[str] = "group"

    def __post_init__(self) -> None:
        if not 0 <= self.smoothing < 1:
            raise ConfigurationError(f"Hindsight needs 0 <= smoothing < 1, got {self.smoothing}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        meant = is_right(batch, 1.0) != batch.is_of(Origin.REPLAYED)  # [A]
        margin = self._margin(output, batch, meant)  # [A]
        kept, lost = functional.logsigmoid(margin), functional.logsigmoid(-margin)
        preference = -(1 - self.smoothing) * kept - self.smoothing * lost  # [A]
        even = output.over_logits(_mean_over_vocabulary)  # [T]
        imitated = -(1 - self.smoothing) * output.logprobs - self.smoothing * even - self.entropy * output.entropy
        is_meant = batch.trainable & batch.on_tokens(meant)
        loss = torch.where(is_meant, imitated + self.contrast * batch.on_tokens(preference), 0.0)
        relabelled = is_meant & batch.on_tokens(batch.is_of(Origin.REPLAYED))
        return loss, {
            "preferred": batch.figure(batch.on_tokens(kept.exp()) * is_meant),
            "relabelled": batch.figure(relabelled.to(loss.dtype)),
        }

    def _margin(self, output: Output, batch: Batch, meant: Tensor) -> Tensor:
        """log P of the one meant - log P of the other, at both: [A]."""
        sizes = per_group(torch.ones_like(batch.rewards), batch)
        if not bool((sizes == 2).all()):
            counts = sorted({int(size) for size in sizes})
            raise ConfigurationError(f"Hindsight needs pairs, got groups of {counts}: use the strategy Relabelled")
        mean = batch.per_attempt(output.logprobs) / num_tokens(batch, output.logprobs)  # [A]
        return per_group(torch.where(meant, mean, -mean), batch)[batch.groups]


def _mean_over_vocabulary(logits: Tensor, tokens: Tensor) -> Tensor:
    return logits.log_softmax(-1).mean(-1)
