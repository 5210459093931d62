"""A policy small enough to enumerate: vocabulary 3, length 2, autoregressive softmax, in float64."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

SEQUENCES = list(itertools.product(range(3), repeat=2))
REWARDS = dict(zip(SEQUENCES, (0.0, 0.125, 1.0, 0.5, 0.0, 0.25, 0.875, 0.0, 0.625), strict=True))


def parameters(seed: int = 0) -> Tensor:
    """Logits of the first token, then of the second given each first: [4, 3]."""
    return torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def token_logprobs(theta: Tensor, sequence: tuple[int, ...]) -> Tensor:
    """Log-probability of each of the two tokens: [2]."""
    first, second = sequence
    table = theta.log_softmax(-1)
    return torch.stack([table[0, first], table[1 + first, second]])


def probability(theta: Tensor, sequence: tuple[int, ...]) -> Tensor:
    return token_logprobs(theta, sequence).sum().exp()


def exact_gradient(theta: Tensor) -> Tensor:
    """Of the expected reward."""
    expected = torch.stack([probability(theta, y) * REWARDS[y] for y in SEQUENCES]).sum()
    return torch.autograd.grad(expected, theta)[0]
