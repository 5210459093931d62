"""Random tokens sampled within a loss, determined by seed, step, rollout and position alone."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

from strop.training.batch import Batch

_MIX = (-4658895280553007687, -7723592293110705685)  # splitmix64's multipliers as signed integers
_STEP = -7046029254386353131
_LOW_BITS = (1 << 53) - 1


def token_keys(batch: Batch, seed: int) -> Tensor:
    """A random key for each token: [T]."""
    names = [f"{seed}/{batch.version}/{rollout}" for rollout in batch.rollout_ids]
    keys = [int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big") for name in names]
    order = torch.arange(len(batch.tokens), device=batch.tokens.device)
    sizes = batch.rollouts.bincount()
    within = order - batch.on_tokens(sizes.cumsum(0) - sizes)  # [T], from 0 in every rollout
    return batch.on_tokens(torch.tensor(keys, device=batch.tokens.device)) + (within << 32)


def uniforms(keys: Tensor, count: int) -> Tensor:
    """`count` numbers in [0, 1) for each key, by splitmix64 (Steele et al., 2014): [C, count]."""
    numbers = keys.unsqueeze(1) + _STEP * torch.arange(1, count + 1, device=keys.device)
    for shift, factor in zip((30, 27), _MIX, strict=True):
        numbers = (numbers ^ _shifted(numbers, shift)) * factor
    numbers = numbers ^ _shifted(numbers, 31)
    return (_shifted(numbers, 11) & _LOW_BITS).double() / (1 << 53)


def _shifted(numbers: Tensor, shift: int) -> Tensor:
    """A logical shift to the right, which signed integers do not have."""
    return (numbers >> shift) & ((1 << (64 - shift)) - 1)


def drawn(logprobs: Tensor, probabilities: Tensor) -> Tensor:
    """Tokens sampled by the inverse of the cumulative distribution [C, V]: [C, K]."""
    cumulated = logprobs.double().exp().cumsum(-1)
    found = torch.searchsorted(cumulated, probabilities * cumulated[:, -1:], right=True)
    return found.clamp(max=logprobs.shape[-1] - 1)
