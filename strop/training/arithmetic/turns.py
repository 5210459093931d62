"""Turns in packed batches: which turn a token belongs to, and sums over the tokens of one turn."""

from __future__ import annotations

import torch
from torch import Tensor

from strop.training.batch import Batch


def turn_numbers(batch: Batch) -> Tensor:
    """Which turn of its rollout each written token belongs to, from 0; -1 elsewhere: [T]."""
    opens, so_far = _opened(batch)
    sizes = batch.rollouts.bincount()
    starts = sizes.cumsum(0) - sizes
    earlier = (so_far - opens)[starts]  # [A], turns of the rollouts before
    return torch.where(batch.trainable, so_far - earlier[batch.rollouts] - 1, -1)


def over_turns(values: Tensor, batch: Batch) -> Tensor:
    """At each written token the sum of `values` over its turn, with gradient; 0 elsewhere: [T]."""
    _, so_far = _opened(batch)
    turns = (so_far - 1).clamp(min=0)  # [T], over the whole batch
    kept = values.where(batch.trainable, values.new_zeros(()))
    sums = values.new_zeros(int(so_far.max()) + 1).index_add(0, turns, kept)
    return sums[turns].where(batch.trainable, values.new_zeros(()))


def _opened(batch: Batch) -> tuple[Tensor, Tensor]:
    """1 where a turn begins, and how many have begun so far: [T], [T]."""
    written = batch.trainable
    before = torch.roll(written, 1)
    before[0] = False
    is_first = torch.roll(batch.rollouts, 1) != batch.rollouts
    is_first[0] = True
    opens = (written & (~before | is_first)).to(torch.int64)
    return opens, opens.cumsum(0)
