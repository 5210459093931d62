"""GRPO and a teacher's opinion of every token, in one loss.

Title: KDRL: Post-Training Reasoning LLMs via Unified Knowledge Distillation and Reinforcement Learning
Paper: arXiv 2506.02208 (2025)
Claim: Better than GRPO alone and than distillation alone, with fewer tokens.
Reading: The joint loss with k2, whose gradient is the reverse KL's; tokens that a mask leaves out keep their place in
    the denominator.
Left out: The variant that puts the teacher's log-ratio into the reward.
Acts: teacher_kl != 0 with teacher=MODEL
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError, nearest
from strop.models.loading.model_names import model_folder
from strop.recipes.setting import Setting
from strop.roles import Loss
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.arithmetic.siblings import group_mean, is_right
from strop.training.batch import Batch, Output
from strop.training.losses.clip import Clip
from strop.training.requirements import Logprobs, Need
from strop.types import FilePath, Metrics

# KDRL's distillation (2506.02208): the student's own tokens, judged by a frozen teacher, beside a policy gradient.
#
# With d = log(policy / teacher) of a sampled token: k2 = d^2 / 2 has the gradient of KL(policy || teacher), k3 through
# autograd that of KL(teacher || policy); the joint loss is built, not the variant that puts d into the reward. Tokens
# that a mask leaves out keep their place in the denominator, so that a step may be split.

_ESTIMATORS = ("k2", "k3")
_MASKS = ("none", "response", "group")


@dataclass(frozen=True)
class Kdrl(Loss):
    """beta(step) * k(d) per token, beta = max(start - fall * step, floor).

    `mask` response distils only where a rollout is wrong, group only where all its siblings are wrong, too.
    """

    teacher: FilePath  # model folder
    estimator: str = "k2"  # k2 (reverse KL) or k3 (forward)
    start: float = 5e-3  # its weight at first
    floor: float = 1e-3  # its least weight
    fall: float = 5e-5  # per step
    mask: str = "none"  # none, response or group: where it teaches
    threshold: float = 1.0  # the reward of a right rollout
    weight: float = 1.0

    scope: ClassVar[str] = "group"

    def __post_init__(self) -> None:
        for name, value, valid in (("estimator", self.estimator, _ESTIMATORS), ("mask", self.mask, _MASKS)):
            if value not in valid:
                raise ConfigurationError(f"Kdrl has no {name} {value!r}: {nearest(value, valid)}")

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset({Logprobs(self.teacher)})

    def beta(self, step: int) -> float:
        """The term's weight at a step."""
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
    teacher: str,  # folder of a better model with the same vocabulary
    estimator: str = "k2",  # k2 (reverse KL) or k3 (forward)
    mask: str = "none",  # none, response (only wrong rollouts) or group (only where all are wrong)
    start: float = 5e-3,  # weight of the teacher at first
    floor: float = 1e-3,  # its least weight
    fall: float = 5e-5,  # of its weight in each step
) -> Run:
    """`teacher` is a folder with a better model of the same vocabulary, as runs/NAME/checkpoints/step-100.

    Its weight falls; start 0 and floor 0 is GRPO.
    """
    distilled = Kdrl(str(model_folder(teacher)), estimator, start, floor, fall, mask)
    return setting.run("kdrl", GroupStandard(), (Clip(), distilled))
