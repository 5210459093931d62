"""CLPO's penalty (2509.25004): half as strong on tasks that are hard, so that the policy may move where it must.

Reading: the release's estimator is k3, and what is hard is its group's mean reward.
Papers: clpo
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.roles import Loss
from strop.training.arithmetic.siblings import group_mean
from strop.training.batch import Batch, Output
from strop.training.requirements import Logprobs, Need
from strop.types import Metrics

_ROUNDING = 1e-9


@dataclass(frozen=True)
class KlBySuccess(Loss):
    """exp(-d) - 1 + d with d = log(policy / reference); times `relief` where at most `hard` of a group is right."""

    hard: float = 0.3  # mean reward of a group up to which its task is hard
    relief: float = 0.5  # factor of the penalty on hard tasks
    weight: float = 0.001  # of this loss beside others

    needs: ClassVar[frozenset[Need]] = frozenset({Logprobs("reference")})
    scope: ClassVar[str] = "group"

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        distance = batch.log_ratio(output.logprobs, batch.logprobs_of("reference"))  # [T]
        is_hard = batch.on_tokens(group_mean(batch.rewards, batch) <= self.hard + _ROUNDING)  # [T]
        penalty = torch.expm1(-distance) + distance
        loss = torch.where(batch.trainable, torch.where(is_hard, self.relief, 1.0) * penalty, 0.0)
        return loss, {"reference_kl": batch.figure(distance), "hard_share": batch.figure(is_hard.to(distance.dtype))}
