"""PACS: supervised classification of rollouts as right or wrong, with the policy's log-ratios as logits.

Title: Implicit Actor Critic Coupling via a Supervised Learning Framework for RLVR
Paper: arXiv 2509.02522 (2025)
Claim: 59.78 % pass@256 on AIME 2025: 13.32 points above PPO, 14.36 above GRPO.
Reading: Log-ratios are to the behaviour policy, not to the base model. Four optimizer steps per batch, as released.
    Groups without contrast are kept: they have a gradient once the policy differs from the behaviour policy.
Acts: classified_right > 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from strop.recipes.setting import Setting
from strop.roles import Loss
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.arithmetic.siblings import group_mean, is_right, per_group
from strop.training.batch import Batch, Output
from strop.training.reductions.means import SequenceMean
from strop.types import Metrics

_NOISE = 1e-3  # scores that differ from 0 by rounding classify nothing


@dataclass(frozen=True)
class Pacs(Loss):
    """c * BCE(q - mean of the siblings' q, right), q = beta * log(policy / behaviour) of the whole rollout.

    c = G / (2 * siblings with the same label) where a group has both labels, else 1. Every token carries its
    rollout's whole term, for the sequence-mean reduction.
    """

    beta: float = 1.0  # scale of the log-ratios
    threshold: float = 1.0  # least success of a right rollout
    weight: float = 1.0

    scope: ClassVar[str] = "group"
    min_group: ClassVar[int] = 2  # the leave-one-out score needs a sibling
    contains_ratio: ClassVar[bool] = True  # a correction on top would count it twice
    needs_distance: ClassVar[bool] = True

    needs_success: ClassVar[bool] = True

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        proxy = self.beta * batch.per_rollout(batch.log_ratio(output.logprobs, batch.behavior_logprobs))  # [A]
        sizes = per_group(torch.ones_like(proxy), batch)[batch.groups]  # [A]
        score = (proxy - group_mean(proxy, batch)) * sizes / (sizes - 1).clamp(min=1)  # [A], leave-one-out
        right = is_right(batch, self.threshold).to(proxy.dtype)
        each = _balance(right, sizes, batch) * functional.binary_cross_entropy_with_logits(
            score, right, reduction="none"
        )
        loss = torch.where(batch.trainable, batch.on_tokens(each), 0.0)
        agrees = ((2 * right - 1) * score > _NOISE).to(loss.dtype)
        return loss, {"classified_right": batch.metric(batch.on_tokens(agrees))}


def _balance(right: Tensor, sizes: Tensor, batch: Batch) -> Tensor:
    """Class weights with which both labels of a group have the same total weight: [A]."""
    num_right = per_group(right, batch)[batch.groups]
    same = torch.where(right > 0, num_right, sizes - num_right)
    return torch.where((num_right > 0) & (num_right < sizes), sizes / (2 * same.clamp(min=1)), 1.0)


def pacs(
    setting: Setting = Setting(),
    beta: float = 1.0,  # scale of the log-ratios
) -> Run:
    """Binary cross-entropy on leave-one-out scores; no advantage."""
    return setting.run("pacs", Constant(), (Pacs(beta),), reduction=SequenceMean(), minibatches=4)
