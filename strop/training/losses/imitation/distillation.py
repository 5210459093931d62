"""On-policy distillation (Agarwal et al., 2306.13649; as a policy gradient: Lu et al., 2025): a teacher scores every
token that the student samples.

Papers: distillation
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.roles import Loss
from strop.training.batch import Batch, Output
from strop.training.requirements import Logprobs, Need
from strop.types import FilePath, Metrics


@dataclass(frozen=True)
class Distillation(Loss):
    """-log policy * A with A = log(teacher / policy) of the token, detached: in expectation the gradient of the reverse
    KL at each context.

    Rewards are not used. With whole distributions instead of sampled tokens: `ExactKl(other=FOLDER)`.
    """

    teacher: FilePath  # model folder
    weight: float = 1.0

    scope: ClassVar[str] = "rollout"
    is_on_policy: ClassVar[bool] = True  # tokens of other weights bias it, unless a correction weighs them

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset({Logprobs(self.teacher)})

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        distance = batch.log_ratio(output.logprobs.detach(), batch.logprobs_of(self.teacher))  # [T]
        loss = torch.where(batch.trainable, distance * output.logprobs, 0.0)
        return loss, {"teacher_kl": batch.metric(distance)}
