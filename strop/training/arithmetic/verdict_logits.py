"""Reward-model score of a language model: logit(good) - logit(bad) at its answer token."""

from __future__ import annotations

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.training.batch import Batch, Output
from strop.training.requirements import Aux

VERDICTS = Aux("verdicts")  # token ids of good and bad: [T, 2]


def verdict_scores(output: Output, batch: Batch) -> Tensor:
    """The score of each rollout, which has exactly one verdict token: [A]."""
    words = batch.aux.get(VERDICTS.name)
    if words is None or words.shape[1:] != (2,):
        raise ConfigurationError("a reward model learns from verdicts: need rollouts of RecitedVerdicts, got others")
    is_verdict = (words != 0).any(1) & batch.trainable  # [T]; turns without a verdict have ids of 0
    counts = batch.per_rollout(is_verdict.to(batch.share.dtype))
    if bool((counts != 1).any()):
        raise ConfigurationError(f"a rollout needs exactly one verdict token, got {sorted(set(counts.tolist()))}")
    scores = output.over_logits(_difference, words.to(torch.int64))
    return batch.per_rollout(torch.where(is_verdict, scores, 0.0))


def _difference(logits: Tensor, tokens: Tensor, words: Tensor) -> Tensor:
    """[C, V], [C], [C, 2] -> [C]."""
    both = logits.gather(1, words)
    return both.select(1, 0) - both.select(1, 1)
