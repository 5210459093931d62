"""Direct preference optimization (Rafailov et al., 2305.18290): the better of two rollouts against the worse.

With a weight on what the search found them apart it is Step-APO (2409.08642), whose pairs are two steps of one state:
their rewards are Q, and the difference of these is that of their advantages.
Papers: dpo, cpl
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from strop.errors import ConfigurationError
from strop.roles import Loss
from strop.training.arithmetic.ratios import check_policy
from strop.training.batch import Batch, Output
from strop.training.requirements import Logprobs, Need
from strop.types import Metrics


@dataclass(frozen=True)
class Dpo(Loss):
    """L = -log sigmoid(beta * h), h = log(policy / reference) of the chosen rollout minus that of the rejected one.

    With `apart`, -log sigmoid(beta * h - apart * (its reward - the other's)): outside beta, and without a gradient.

    A group is one pair; the higher reward is chosen. Every token carries its pair's whole loss, so the
    sequence-mean reduction (1 / (rollouts * N) per token) gives the mean over pairs. Equal rewards give log 2
    and no gradient.
    """

    beta: float = 0.1  # of the reward that log(policy / reference) stands for
    weight: float = 1.0  # of this loss beside others
    against: str = "reference"  # or old: the weights that wrote the pair, where rounds begin anew from those
    apart: float = 0.0  # weight of the difference of rewards, which h has to exceed

    scope: ClassVar[str] = "group"

    def __post_init__(self) -> None:
        check_policy(self.against, ("reference", "old"), self)

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset({Logprobs(self.against)})

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        gains = batch.per_rollout(batch.log_ratio(output.logprobs, batch.logprobs_of(self.against)))
        side = _side(batch).to(gains.dtype)  # [A]
        between = _per_group(side * batch.rewards.to(gains.dtype), batch)  # [G]
        margins = self.beta * _per_group(side * gains, batch) - self.apart * between  # [G]
        on_tokens = batch.on_tokens(margins[batch.groups])  # [T]
        loss = torch.where(batch.trainable, functional.softplus(-on_tokens), 0.0)  # -log sigmoid(x) = softplus(-x)
        metrics = {"preferred_share": batch.metric((on_tokens > 0).to(loss.dtype)), "margin": batch.metric(on_tokens)}
        if self.apart:
            metrics["reward_margin"] = batch.metric(batch.on_tokens(between[batch.groups]))
        return loss, metrics


def _side(batch: Batch) -> Tensor:
    """+1 for the chosen rollout of each pair, -1 for the rejected one, 0 for both where rewards are equal: [A]."""
    sizes = _per_group(torch.ones_like(batch.rewards), batch)  # [G]
    if not bool((sizes == 2).all()):
        counts = sorted({int(size) for size in sizes})
        raise ConfigurationError(f"Dpo needs groups of exactly 2 rollouts, got {counts}: pair them with BestAndWorst")
    means = _per_group(batch.rewards, batch) / 2  # [G]
    return torch.sign(batch.rewards - means[batch.groups])


def _per_group(values: Tensor, batch: Batch) -> Tensor:
    """Sum an [A] quantity over each group: [G]."""
    return values.new_zeros(len(batch.group_numbers)).index_add(0, batch.groups, values)
