"""Verdicts of one token each, with scores from plain numbers."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from strop.training.batch import Batch
from tests.building import Said, make_batch

GOOD, BAD, WORDS = 3, 1, 5  # tokens, and how many there are


def verdicts(
    scores: Sequence[float], rewards: Sequence[float], groups: Sequence[int] | None = None
) -> tuple[Batch, Said]:
    """One rollout per score: logit(good) - logit(bad) of its only written token; other logits are noise."""
    batch = make_batch([[0.0]] * len(scores), groups=groups, rewards=rewards)
    size = len(batch.tokens)
    batch.aux = {"verdicts": torch.tensor([GOOD, BAD], dtype=torch.float32).expand(size, 2)}
    logits = torch.randn(size, WORDS, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    logits[batch.trainable, GOOD] = logits[batch.trainable, BAD] + torch.tensor(scores, dtype=torch.float64)
    zeros = torch.zeros(size, dtype=torch.float64)
    return batch, Said(zeros, zeros, logits.requires_grad_(), batch.tokens)


def at_verdicts(batch: Batch, output: Said) -> list[tuple[float, float]]:
    """The gradients of good and bad at each verdict."""
    assert output.logits is not None and output.logits.grad is not None
    rows = output.logits.grad[batch.trainable]
    return [(float(row[GOOD]), float(row[BAD])) for row in rows]
