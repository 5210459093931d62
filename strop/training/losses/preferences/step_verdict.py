"""A process reward model's loss: cross-entropy between the two words of a verdict and how good a beginning is.

Papers: er-prm
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from strop.errors import ConfigurationError
from strop.roles import Loss
from strop.training.arithmetic.verdict_logits import VERDICTS, verdict_scores
from strop.training.batch import Batch, Output
from strop.training.requirements import Need
from strop.types import Metrics


@dataclass(frozen=True)
class StepVerdict(Loss):
    """-(r log p + (1 - r) log(1 - p)), p = s(score) the share of good among both words, r the attempt's reward.

    Every token carries its attempt's loss, for the sequence-mean reduction.
    """

    weight: float = 1.0

    needs: ClassVar[frozenset[Need]] = frozenset({VERDICTS})

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        labels = batch.rewards
        if bool(((labels < 0) | (labels > 1)).any()):
            raise ConfigurationError(f"StepVerdict needs labels from 0 to 1, got {labels.min():g} to {labels.max():g}")
        scores = verdict_scores(output, batch)
        each = functional.binary_cross_entropy_with_logits(scores, labels.to(scores.dtype), reduction="none")
        loss = torch.where(batch.trainable, batch.on_tokens(each), 0.0)
        far = (scores.detach().sigmoid() - labels).abs()
        return loss, {"label": batch.figure(batch.on_tokens(labels)), "label_error": batch.figure(batch.on_tokens(far))}
