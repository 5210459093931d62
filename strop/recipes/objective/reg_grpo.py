"""Regress how the policy moved onto the advantages, held near the reference (DeepVideo-R1).

Title: DeepVideo-R1: Video Reinforcement Fine-Tuning via Difficulty-aware Regressive GRPO
Paper: arXiv 2506.07464 (2025)
Claim: Better reasoning about videos than GRPO's, without clips.
Reading: The spread of the log-ratios is held above a floor, without a gradient below it, because it is 0 at first.
    The paper's weight of the KL was not found; GRPO's stands in.
Left out: Difficulty-aware augmentation, and videos.
Acts: moved > 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Loss
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.batch import Batch, Output
from strop.training.losses.kl import Kl
from strop.training.reductions.means import SequenceMean
from strop.types import Metrics

# Reg-GRPO (DeepVideo-R1, 2506.07464): the policy's own change is regressed onto the advantages; no ratio, no clip.
#
# The optimum under a KL penalty has reward = beta * log(policy / behaviour) + a constant of the task; standardising
# both sides within the group removes beta and the constant. Reading: the spread of the log ratios is held above
# `floor`, with no gradient where it is held, because it is 0 on the first step; the paper's difficulty-aware
# augmentation of videos is not part of this loss.


@dataclass(frozen=True)
class RegGrpo(Loss):
    """(A - (p - mean p) / max(std p, floor))^2, p a rollout's log(policy / behaviour), mean, std (n - 1) by group.

    Without a KL term the scale of p is free. Belongs with a sequence-mean reduction: every token carries its rollout's
    loss. Where std p is above the floor this is 2 (G - 1) / G * (1 - correlation of p and A) for standardised A.
    """

    floor: float = 0.1  # least spread of log-ratios that is divided by
    weight: float = 1.0

    scope: ClassVar[str] = "group"
    min_group: ClassVar[int] = 2
    contains_ratio: ClassVar[bool] = True  # a correction on top would count it twice
    needs_distance: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.floor > 0:
            raise ConfigurationError(f"RegGrpo needs a floor > 0, got {self.floor}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        moved = batch.per_rollout(batch.log_ratio(output.logprobs, batch.behavior_logprobs))  # [A]
        sizes = batch.per_rollout(torch.ones_like(output.logprobs)).clamp(min=1)  # [A]
        advantages = batch.per_rollout(batch.advantages.to(moved.dtype)) / sizes  # [A]
        centred = moved - _group_sum(moved, batch) / _group_sum(torch.ones_like(moved), batch)
        others = (_group_sum(torch.ones_like(moved), batch) - 1).clamp(min=1)
        # held before the root, whose gradient at 0 is infinite
        spread = (_group_sum(centred.square(), batch) / others).clamp(min=self.floor**2).sqrt()
        error = batch.on_tokens((advantages - centred / spread).square())  # [T]
        loss = torch.where(batch.trainable, error, 0.0)
        return loss, {"regression_error": batch.metric(loss), "moved": batch.metric(batch.on_tokens(moved.abs()))}


def _group_sum(values: Tensor, batch: Batch) -> Tensor:
    """Of each rollout's group: [A]."""
    sums = values.new_zeros(len(batch.group_numbers)).index_add(0, batch.groups, values)
    return sums[batch.groups]


def reg_grpo(
    setting: Setting = Setting(),
    floor: float = 0.1,  # least spread of log-ratios that is divided by
    kl: float = 0.04,  # weight of the penalty to the reference
) -> Run:
    """Only the KL term bounds how far a step goes; the paper's weight for it was not found, GRPO's stands in."""
    losses = (RegGrpo(floor), Kl("k3", kl))
    return setting.run("reg_grpo", GroupStandard(), losses, reduction=SequenceMean(), minibatches=2)
