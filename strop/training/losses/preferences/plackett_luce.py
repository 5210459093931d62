"""Plackett-Luce (Zhu et al., 2301.11270): a reward model's loss on whole rankings, the best of what is left each time.

Papers: principled-rlhf
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.roles import Loss
from strop.training.arithmetic.siblings import mean_over_pairs, ordered_pairs
from strop.training.arithmetic.verdict_logits import VERDICTS, verdict_scores
from strop.training.batch import Batch, Output
from strop.training.requirements import Need
from strop.types import Metrics


@dataclass(frozen=True)
class PlackettLuce(Loss):
    """-sum over k of log(exp(score of the k-th best) / sum of exp(score) over it and all worse ones).

    Of two siblings it is Bradley-Terry. Of siblings with equal rewards none comes before the other: each competes with
    those that are worse. Every token carries its group's loss, for the sequence-mean reduction.
    """

    weight: float = 1.0

    needs: ClassVar[frozenset[Need]] = frozenset({VERDICTS})
    scope: ClassVar[str] = "group"
    min_group: ClassVar[int] = 2

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        scores = verdict_scores(output, batch)  # [A]
        is_worse = (batch.groups.unsqueeze(1) == batch.groups) & (batch.rewards.unsqueeze(1) > batch.rewards)
        left = is_worse | torch.eye(len(scores), dtype=torch.bool, device=scores.device)  # [A, A]
        rest = torch.where(left, scores.unsqueeze(0), -torch.inf).logsumexp(1)  # [A]
        each = scores.new_zeros(len(batch.group_numbers)).index_add(0, batch.groups, rest - scores)  # [G]
        loss = torch.where(batch.trainable, batch.on_tokens(each[batch.groups]), 0.0)
        pairs = ordered_pairs(batch)
        gaps = (scores[pairs[0]] - scores[pairs[1]]).detach()
        ahead = mean_over_pairs((gaps > 0).to(gaps.dtype), pairs, batch)
        apart = mean_over_pairs(gaps, pairs, batch)
        figures = {"preferred_share": ahead, "score_margin": apart}
        return loss, {name: batch.figure(batch.on_tokens(figure)) for name, figure in figures.items()}
