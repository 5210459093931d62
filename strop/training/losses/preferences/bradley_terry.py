"""Bradley-Terry loss of a reward model on pairs, including all pairs of a ranking.

Papers: axiomatic-preference, principled-rlhf
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from strop.roles import Loss
from strop.training.arithmetic.siblings import mean_over_pairs, ordered_pairs
from strop.training.arithmetic.verdict_logits import VERDICTS, verdict_scores
from strop.training.batch import Batch, Output
from strop.training.requirements import Need
from strop.types import Metrics


@dataclass(frozen=True)
class BradleyTerry(Loss):
    """-log s(score of the better - score of the worse), a mean over all pairs of siblings with different rewards.

    Every token has its group's loss, for the sequence-mean reduction. Siblings of equal reward make no pair.
    """

    weight: float = 1.0

    needs: ClassVar[frozenset[Need]] = frozenset({VERDICTS})
    scope: ClassVar[str] = "group"
    min_group: ClassVar[int] = 2

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        scores, pairs = verdict_scores(output, batch), ordered_pairs(batch)
        gaps = scores[pairs[0]] - scores[pairs[1]]  # [P]
        each = mean_over_pairs(functional.softplus(-gaps), pairs, batch)  # [A], -log s(x) = softplus(-x)
        loss = torch.where(batch.trainable, batch.on_tokens(each), 0.0)
        ahead = mean_over_pairs((gaps > 0).to(gaps.dtype), pairs, batch)
        apart = mean_over_pairs(gaps, pairs, batch)
        metrics = {"preferred_share": ahead, "score_margin": apart}
        return loss, {name: batch.metric(batch.on_tokens(metric)) for name, metric in metrics.items()}
