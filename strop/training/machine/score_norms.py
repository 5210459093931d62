"""Squared gradient norm of each rollout's log-probability, |grad log p(rollout)|^2: one backward pass per rollout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from strop.training.batch import Batch

_PER_TOKEN = (
    "tokens", "positions", "trainable", "behavior_logprobs", "advantages", "share", "temperature", "versions"
)  # fmt: skip
_OPTIONAL = ("returns", "values", "observed", "observed_share")
_BY_NAME = ("aux", "logprobs", "frozen")


def score_norms(model: Any, batch: Batch, logprob_sum: Callable[[Any, Batch], Tensor]) -> Tensor:
    """[A]; `logprob_sum(model, batch)` is the log-probability of all that was written in a batch, with gradient."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    found = []
    for index in range(batch.num_rollouts):
        gradients = torch.autograd.grad(logprob_sum(model, alone(batch, index)), weights, allow_unused=True)
        squares = [gradient.double().square().sum() for gradient in gradients if gradient is not None]
        found.append(torch.stack(squares).sum())
    return torch.stack(found).to(batch.share)


def alone(batch: Batch, index: int) -> Batch:
    """One rollout of a batch as a batch of its own, without what was filled in before."""
    rows = (batch.rollouts == index).nonzero().squeeze(1)  # contiguous
    part = slice(int(rows[0]), int(rows[-1]) + 1)
    mine: dict[str, Any] = {name: getattr(batch, name)[part] for name in _PER_TOKEN}
    mine |= dict.fromkeys(_OPTIONAL) | {name: {} for name in _BY_NAME}
    return replace(
        batch,
        **mine,
        segments=batch.segments[part] - batch.segments[part][0],
        rollouts=torch.zeros_like(batch.rollouts[part]),
        groups=torch.zeros_like(batch.groups[:1]),
        rewards=batch.rewards[index : index + 1],
        successes=batch.successes[index : index + 1],
        score_norms=None,
        group_numbers=(batch.group_numbers[int(batch.groups[index])],),
        rollout_ids=batch.rollout_ids[index : index + 1],
        task_ids=batch.task_ids[index : index + 1],
    )
