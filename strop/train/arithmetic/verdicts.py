"""A language model as a reward model: what it thinks of a reply is logit(good) - logit(bad) at its verdict."""

from __future__ import annotations

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.train.arithmetic.siblings import num_tokens
from strop.train.batch import Batch, Output
from strop.train.needs import Aux

VERDICTS = Aux("verdicts")  # the ids of good and bad: [T, 2]


def verdict_scores(output: Output, batch: Batch) -> Tensor:
    """The score of each attempt, whose only written token is its verdict: [A]."""
    words = batch.aux.get(VERDICTS.name)
    if words is None or words.shape[1:] != (2,):
        raise ConfigurationError("a reward model learns from verdicts: need attempts of RecitedVerdicts, got others")
    if bool((num_tokens(batch, batch.share) != 1).any()):
        raise ConfigurationError("a verdict is one token, and some attempts have written more")
    return batch.per_attempt(output.over_logits(_difference, words.to(torch.int64)))


def _difference(logits: Tensor, tokens: Tensor, words: Tensor) -> Tensor:
    """[C, V], [C], [C, 2] -> [C]."""
    both = logits.gather(1, words)
    return both.select(1, 0) - both.select(1, 1)
