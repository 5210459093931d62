"""Reg-GRPO (DeepVideo-R1): regression of group-normalized log-ratios onto advantages, with a KL penalty; no clipping.

Title: DeepVideo-R1: Video Reinforcement Fine-Tuning via Difficulty-aware Regressive GRPO
Paper: arXiv 2506.07464 (2025)
Claim: Better reasoning about videos than GRPO's, without clipping.
Reading: The standard deviation of the log-ratios has a floor, without a gradient below it, because it is 0 on the first
    step. The paper's weight of the KL was not found; the default is GRPO's.
Left out: Difficulty-aware augmentation, and videos.
Acts: abs_log_ratio > 0
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

# Reg-GRPO (2506.07464). The optimum under a KL penalty has reward = beta * log(policy / behaviour) + a constant of the
# task; normalizing both sides within the group removes beta and the constant.


@dataclass(frozen=True)
class RegGrpo(Loss):
    """(A - (p - mean p) / max(std p, floor))^2, p a rollout's log(policy / behaviour), mean and std (n - 1) per group.

    Without a KL term the scale of p is free. Every token carries its rollout's loss, for the sequence-mean reduction.
    Where std p is above the floor this is 2 (G - 1) / G * (1 - correlation of p and A) for normalized A.
    """

    floor: float = 0.1  # least standard deviation of log-ratios that is divided by
    weight: float = 1.0

    scope: ClassVar[str] = "group"
    min_group: ClassVar[int] = 2
    contains_ratio: ClassVar[bool] = True  # a correction on top would count it twice
    needs_distance: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.floor > 0:
            raise ConfigurationError(f"RegGrpo needs a floor > 0, got {self.floor}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        log_ratios = batch.per_rollout(batch.log_ratio(output.logprobs, batch.behavior_logprobs))  # [A]
        sizes = batch.per_rollout(torch.ones_like(output.logprobs)).clamp(min=1)  # [A]
        advantages = batch.per_rollout(batch.advantages.to(log_ratios.dtype)) / sizes  # [A]
        centred = log_ratios - _group_sum(log_ratios, batch) / _group_sum(torch.ones_like(log_ratios), batch)
        others = (_group_sum(torch.ones_like(log_ratios), batch) - 1).clamp(min=1)
        # clamped before the root, whose gradient at 0 is infinite
        std = (_group_sum(centred.square(), batch) / others).clamp(min=self.floor**2).sqrt()
        error = batch.on_tokens((advantages - centred / std).square())  # [T]
        loss = torch.where(batch.trainable, error, 0.0)
        return loss, {
            "regression_error": batch.metric(loss),
            "abs_log_ratio": batch.metric(batch.on_tokens(log_ratios.abs())),
        }


def _group_sum(values: Tensor, batch: Batch) -> Tensor:
    """Sum over each rollout's group: [A]."""
    sums = values.new_zeros(len(batch.group_numbers)).index_add(0, batch.groups, values)
    return sums[batch.groups]


def reg_grpo(
    setting: Setting = Setting(),
    floor: float = 0.1,  # least standard deviation of log-ratios that is divided by
    kl: float = 0.04,  # weight of the KL penalty to the reference policy
) -> Run:
    """Regression loss and KL penalty; only the KL penalty limits the size of an update."""
    losses = (RegGrpo(floor), Kl("k3", kl))
    return setting.run("reg_grpo", GroupStandard(), losses, reduction=SequenceMean(), minibatches=2)
