"""Sums over siblings and along rollouts, for losses that compare whole rollouts."""

from __future__ import annotations

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.success import ROUNDING
from strop.training.batch import Batch


def per_group(values: Tensor, batch: Batch) -> Tensor:
    """Sum an [A] quantity over each group: [G]."""
    return values.new_zeros(len(batch.group_numbers)).index_add(0, batch.groups, values)


def group_mean(values: Tensor, batch: Batch, among: Tensor | None = None) -> Tensor:
    """Each rollout's group mean of an [A] quantity, over the siblings `among` [A] bool (all); 0 where there is none."""
    weight = torch.ones_like(values) if among is None else among.to(values.dtype)
    sums, sizes = per_group(weight * values, batch), per_group(weight, batch)
    return (sums / sizes.clamp(min=1))[batch.groups]


def num_tokens(batch: Batch, like: Tensor) -> Tensor:
    """Written tokens of each rollout, at least 1: [A]."""
    return batch.per_rollout(torch.ones_like(like)).clamp(min=1)


def sides(batch: Batch, owner: object) -> Tensor:
    """+1 for the rollout of a pair with the higher reward, -1 for the other, 0 for both where they are equal: [A]."""
    sizes = per_group(torch.ones_like(batch.rewards), batch)  # [G]
    if not bool((sizes == 2).all()):
        counts = sorted({int(size) for size in sizes})
        raise ConfigurationError(
            f"{type(owner).__name__} needs groups of exactly 2 rollouts, got {counts}: add a gate that forms pairs"
        )
    return torch.sign(batch.rewards - group_mean(batch.rewards, batch))


def margins(gains: Tensor, batch: Batch, owner: object) -> Tensor:
    """The better rollout's gain minus the worse one's in each pair; 0 for ties: [G]."""
    return per_group(sides(batch, owner).to(gains.dtype) * gains, batch)


def ordered_pairs(batch: Batch) -> tuple[Tensor, Tensor]:
    """Indices of all sibling pairs of which the first has the higher reward: [P], [P]; ties make no pair."""
    is_pair = (batch.groups.unsqueeze(1) == batch.groups) & (batch.rewards.unsqueeze(1) > batch.rewards)
    better, worse = is_pair.nonzero(as_tuple=True)
    return better, worse


def mean_over_pairs(losses: Tensor, pairs: tuple[Tensor, Tensor], batch: Batch) -> Tensor:
    """Each rollout's group mean of a loss over its pairs [P]; 0 where a group has none: [A]."""
    owner = batch.groups[pairs[0]]
    sums = losses.new_zeros(len(batch.group_numbers)).index_add(0, owner, losses)
    counts = losses.new_zeros(len(batch.group_numbers)).index_add(0, owner, torch.ones_like(losses))
    return (sums / counts.clamp(min=1))[batch.groups]


def following(values: Tensor, batch: Batch) -> Tensor:
    """The value at the rollout's next completion token, 0 after its last one: [T]."""
    rows = batch.trainable.nonzero().squeeze(1)  # [R]
    own = values.index_select(0, rows)
    rollouts = batch.rollouts.index_select(0, rows)
    after = torch.cat([own[1:], own.new_zeros(min(1, len(own)))])
    goes_on = torch.cat([rollouts[1:] == rollouts[:-1], rollouts.new_zeros(min(1, len(own)), dtype=torch.bool)])
    return torch.zeros_like(values).index_copy(0, rows, after.where(goes_on, after.new_zeros(())))


def is_right(batch: Batch, threshold: float) -> Tensor:
    """Rollouts whose success reaches the threshold, up to a rounding error: [A] bool."""
    return batch.successes >= threshold - ROUNDING


def is_taught(batch: Batch) -> Tensor:
    """Rollouts without sampled tokens (version -1): demonstrations and other outside text: [A] bool."""
    outside = batch.per_rollout(((batch.versions < 0) & batch.trainable).to(batch.share.dtype))
    return outside > 0
