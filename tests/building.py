"""Groups, batches and policy outputs from plain numbers, for exact tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from strop.training.batch import Batch
from strop.types import SUCCESS, Group, Message, Outcome, Rollout, Task, Turn

TASK = Task((Message("user", "1+1="),), "2", "test")


@dataclass
class Said:
    """What a policy says about a batch; `entropy` is 0 and `logits` [T, V] absent unless given."""

    logprobs: Tensor
    entropy: Tensor
    logits: Tensor | None = None
    tokens: Tensor | None = None
    others: dict[str, Tensor] = field(default_factory=dict)  # logits [T, V] of frozen policies
    states: Tensor = field(default_factory=lambda: torch.zeros(0))

    def over_logits(self, function: Callable[..., Tensor], *columns: Tensor, where: Tensor | None = None) -> Tensor:
        assert self.logits is not None and self.tokens is not None
        return function(self.logits, self.tokens, *columns)

    def over_both(self, function: Callable[..., Tensor], policy: str, *columns: Tensor) -> Tensor:
        assert self.logits is not None and self.tokens is not None
        return function(self.logits, self.others[policy], self.tokens, *columns)

    def reread(self, others: Tensor, share: float) -> Said:
        return self


def turn(num_tokens: int, version: int = 0) -> Turn:
    """A turn of `num_tokens` written tokens after a prompt of one."""
    return Turn(
        prompt=np.array([1]),
        tokens=np.arange(num_tokens),
        logprobs=np.full(num_tokens, -1.0, dtype=np.float32),
        versions=np.full(num_tokens, version),
        message=Message("assistant", "2"),
    )


def make_group(
    rewards: Sequence[float],
    lengths: Sequence[int] | None = None,
    failed: Sequence[int] = (),
    number: int = 0,
    turn_rewards: Sequence[tuple[float, ...]] | None = None,
    pruned: Sequence[int] = (),
) -> Group:
    """One rollout per reward, of the given lengths (1 each); indices in `failed` FAILED, in `pruned` were PRUNED."""
    ends = dict.fromkeys(pruned, Outcome.PRUNED) | dict.fromkeys(failed, Outcome.FAILED)
    rollouts = [
        Rollout(
            id=f"{number}-{i}",
            task=TASK,
            turns=(turn(1 if lengths is None else lengths[i]),),
            outcome=ends.get(i, Outcome.FINISHED),
            reward=reward,
            turn_rewards=() if turn_rewards is None else turn_rewards[i],
            facts={SUCCESS: min(max(reward, 0.0), 1.0)},
        )
        for i, reward in enumerate(rewards)
    ]
    return Group(number, TASK, rollouts)


def advantages_of(group: Group) -> list[float | None]:
    """The first token's advantage of every rollout, None where no advantage was given."""
    return [None if t.advantages is None else float(t.advantages[0]) for t in group.rollouts]


def lay_out(written: Sequence[Sequence[float]], prompt: float = 0.0) -> Tensor:
    """[T] from numbers for the written tokens of each rollout; each rollout starts with one prompt token."""
    return torch.tensor([value for values in written for value in (prompt, *values)], dtype=torch.float64)


def make_batch(
    behavior: Sequence[Sequence[float]],
    advantages: Sequence[float] | None = None,
    groups: Sequence[int] | None = None,
    rewards: Sequence[float] | None = None,
    reference: Sequence[Sequence[float]] | None = None,
    share: Sequence[Sequence[float]] | None = None,
) -> Batch:
    """A packed batch of float64; prompt tokens hold NaN where no mechanism may look. Share defaults to 1 / tokens."""
    sizes = [len(values) for values in behavior]
    num_rollouts, num_written = len(sizes), max(sum(sizes), 1)
    groups = [0] * num_rollouts if groups is None else groups
    advantages = [1.0] * num_rollouts if advantages is None else advantages
    share = [[1.0 / num_written] * size for size in sizes] if share is None else share
    rollouts = torch.repeat_interleave(torch.arange(num_rollouts), torch.tensor([size + 1 for size in sizes]))
    trainable = lay_out([[1.0] * size for size in sizes]).bool()
    return Batch(
        tokens=torch.zeros_like(rollouts),
        positions=torch.cat([torch.arange(size + 1) for size in sizes]),
        segments=rollouts,
        rollouts=rollouts,
        groups=torch.tensor(groups),
        trainable=trainable,
        behavior_logprobs=lay_out(behavior, float("nan")),
        advantages=lay_out([[advantages[i]] * size for i, size in enumerate(sizes)]),
        share=lay_out(share),
        temperature=torch.ones(len(rollouts), dtype=torch.float64),
        versions=torch.where(trainable, 0, -1),
        rewards=torch.tensor([0.0] * num_rollouts if rewards is None else rewards, dtype=torch.float64),
        successes=torch.tensor([0.0] * num_rollouts if rewards is None else rewards, dtype=torch.float64),
        origins=torch.zeros(num_rollouts, dtype=torch.int64),
        group_numbers=tuple(sorted(set(groups))),
        rollout_ids=tuple(str(i) for i in range(num_rollouts)),
        task_ids=tuple(str(group) for group in groups),
        logprobs={} if reference is None else {"reference": lay_out(reference, float("nan"))},
    )


def say(logprobs: Sequence[Sequence[float]], entropy: Sequence[Sequence[float]] | None = None) -> Said:
    """An output whose logprobs (and entropy, where given) are leaves that want a gradient."""
    leaf = lay_out(logprobs).requires_grad_()
    if entropy is None:
        return Said(leaf, torch.zeros_like(leaf))
    return Said(leaf, lay_out(entropy).requires_grad_())


def written(batch: Batch, values: Tensor | None) -> list[float]:
    """The values at the written tokens."""
    assert values is not None
    return values.detach()[batch.trainable].tolist()
