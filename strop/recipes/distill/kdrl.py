"""KDRL: GRPO plus reverse-KL distillation from a frozen teacher on the policy's own tokens, in one loss.

Title: KDRL: Post-Training Reasoning LLMs via Unified Knowledge Distillation and Reinforcement Learning
Paper: arXiv 2506.02208 (2025)
Claim: Better than GRPO alone and than distillation alone, with fewer tokens.
Reading: The joint loss with k2, whose gradient is that of the reverse KL; masked tokens stay in the denominator.
Left out: The variant that puts the teacher's log-ratio into the reward.
Acts: teacher_kl != 0 with teacher=MODEL
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError, nearest
from strop.recipes.named_parts import named_model
from strop.recipes.setting import Setting
from strop.roles import Loss
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.arithmetic.siblings import group_mean, is_right
from strop.training.batch import Batch, Output
from strop.training.losses.clip import Clip
from strop.training.requirements import Logprobs, Need
from strop.types import FilePath, Metrics

# KDRL's distillation term (2506.02208), added to a policy gradient.
#
# With d = log(policy / teacher) of a sampled token, k2 = d^2 / 2 has the gradient of KL(policy || teacher), and k3
# through autograd that of KL(teacher || policy). Masked tokens stay in the denominator, so that a step can be split.

_ESTIMATORS = ("k2", "k3")
_MASKS = ("none", "response", "group")


@dataclass(frozen=True)
class Kdrl(Loss):
    """beta(step) * k(d) per token, beta = max(start - fall * step, floor).

    mask=response distils wrong rollouts only, mask=group only those of groups without a right rollout.
    """

    teacher: FilePath  # model folder
    estimator: str = "k2"  # k2 (reverse KL) or k3 (forward)
    start: float = 5e-3  # beta at step 0
    floor: float = 1e-3  # least beta
    fall: float = 5e-5  # decrease of beta per step
    mask: str = "none"  # none, response or group: which rollouts are distilled
    threshold: float = 1.0  # least success of a right rollout
    weight: float = 1.0

    scope: ClassVar[str] = "group"

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name, value, valid in (("estimator", self.estimator, _ESTIMATORS), ("mask", self.mask, _MASKS)):
            if value not in valid:
                raise ConfigurationError(f"Kdrl has no {name} {value!r}: {nearest(value, valid)}")

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset({Logprobs(self.teacher)})

    def beta(self, step: int) -> float:
        """The weight of the term at a step."""
        return max(self.start - self.fall * step, self.floor)

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        distance = batch.log_ratio(output.logprobs, batch.logprobs_of(self.teacher))  # [T]
        divergence = distance.square() / 2 if self.estimator == "k2" else torch.expm1(-distance) + distance
        kept = batch.trainable & batch.on_tokens(self._is_distilled(batch))
        loss = torch.where(kept, self.beta(batch.version) * divergence, 0.0)
        return loss, {"teacher_kl": batch.metric(distance), "distilled_share": batch.metric(kept.to(loss.dtype))}

    def _is_distilled(self, batch: Batch) -> Tensor:
        right = is_right(batch, self.threshold)  # [A]
        if self.mask == "none":
            return torch.ones_like(right)
        return ~right if self.mask == "response" else group_mean(right.to(batch.rewards.dtype), batch) == 0


def kdrl(
    setting: Setting = Setting(),
    *,
    teacher: str,  # folder of a stronger model with the same vocabulary
    estimator: str = "k2",  # k2 (reverse KL) or k3 (forward)
    mask: str = "none",  # none, response (only wrong rollouts) or group (only where all are wrong)
    start: float = 5e-3,  # weight of the distillation term at step 0
    floor: float = 1e-3,  # least weight of the distillation term
    fall: float = 5e-5,  # decrease of the weight per step
) -> Run:
    """GRPO with distillation from `teacher`, a folder such as runs/NAME/checkpoints/step-100.

    start=0 and floor=0 is plain GRPO.
    """
    distilled = Kdrl(named_model("teacher", teacher), estimator, start, floor, fall, mask)
    return setting.run("kdrl", GroupStandard(), (Clip(), distilled))
