"""Policy statistics: quantities of the policy at sampled tokens, recorded on each rollout before advantages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from torch import Tensor

from strop.capabilities import inside
from strop.roles import Advantage, ValueModel
from strop.training.batch import Batch
from strop.training.machine.logprobs import PolicyOutput
from strop.training.pack import closed, pack
from strop.training.requirements import HIDDEN_AFTER, PROMPT_HIDDEN, PolicyStatistic
from strop.types import Group, Rollout

if TYPE_CHECKING:
    from strop.run import Run

Wanted: TypeAlias = Callable[[PolicyOutput], Tensor]
Look: TypeAlias = Callable[
    [str, Batch, Sequence[Wanted]], list[Tensor]
]  # keyed by policy name; one forward pass for all


def take_statistics(groups: Sequence[Group], needs: frozenset[PolicyStatistic], look: Look, max_tokens: int) -> None:
    """Fill `policy_statistics` of every scored rollout that has completion tokens."""
    rollouts = {rollout.id: rollout for group in groups for rollout in group.scored}
    policies = sorted({policy_statistic.policy for policy_statistic in needs})
    if HIDDEN_AFTER in needs:  # the state of a context's last token is only computed if another token follows it
        groups = [replace(group, rollouts=[closed(rollout) for rollout in group.scored]) for group in groups]
    for batch in pack(groups, None, 0, max_tokens):
        owners = [rollouts[each] for each in batch.rollout_ids]
        for policy in policies:
            asked = [
                policy_statistic for policy_statistic in sorted(needs, key=str) if policy_statistic.policy == policy
            ]
            for policy_statistic, values in zip(
                asked, look(policy, batch, [policy_statistic.look for policy_statistic in asked]), strict=True
            ):
                where = _first_prompts(batch) if policy_statistic == PROMPT_HIDDEN else batch.trainable
                _hand_out(policy_statistic.name, values, where, batch, owners)


def _hand_out(name: str, values: Tensor, where: Tensor, batch: Batch, owners: Sequence[Rollout]) -> None:
    """Record each rollout's part of the [T, ...] values."""
    counts = torch.zeros(batch.num_rollouts, dtype=torch.int64).index_add(0, batch.rollouts, where.to(torch.int64))
    array, ends = values[where].numpy(), np.cumsum(counts.numpy()).tolist()
    for owner, (low, high) in zip(owners, pairwise([0, *ends]), strict=True):
        owner.policy_statistics[name] = array[low:high]


def _first_prompts(batch: Batch) -> Tensor:
    """The prompt of each rollout's first completion: [T] bool."""
    written = batch.trainable.to(torch.int64).cumsum(0)
    sizes = batch.rollouts.bincount()
    before = (written - batch.trainable.to(torch.int64))[
        sizes.cumsum(0) - sizes
    ]  # [A], completion tokens of the rollouts before
    return (written == batch.on_tokens(before)) & ~batch.trainable


def statistics_needed(run: Run) -> frozenset[PolicyStatistic]:
    """Statistics that the advantage and the value model read."""
    asked = [part.needs for part in inside(run.values, ValueModel)]
    return frozenset[PolicyStatistic]().union(*asked, *(part.needs for part in inside(run.advantage, Advantage)))
