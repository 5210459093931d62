"""NFT: supervised fine-tuning on right and wrong rollouts, with an implicit negative policy for wrong ones.

Title: Bridging Supervised Learning and Reinforcement Learning in Math Reasoning
Paper: arXiv 2505.18116 (2025)
Claim: Better than fine-tuning on right rollouts, and level with GRPO and DAPO at 7B and 32B.
Reading: As released, a ratio is floored in value but keeps its gradient, and tokens are summed over a constant length.
    The release makes 16 optimizer steps per batch of 512 tasks; here it is four, of two groups each.
    negative_weight 0 imitates right rollouts only.
Acts: held_share > 0 and dropped_groups > 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError, nearest
from strop.filter.gates.zero_variance import ZeroVariance
from strop.recipes.setting import Setting
from strop.roles import Loss
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.arithmetic.siblings import group_mean, is_right
from strop.training.batch import Batch, Output
from strop.training.reductions.means import ConstantLength
from strop.types import Metrics

# NFT (2505.18116): wrong rollouts are samples of an implicit negative policy, (behaviour - p * policy) / (1 - p), where
# p is the task's pass rate. Maximizing the likelihood of that policy trains the policy itself.

_LOWEST, _HIGHEST = 0.02, 0.98  # bounds of a pass rate
_LARGEST = 10.0  # largest log-ratio
_NOISE = 1e-3  # ratios that differ from 1 by rounding are not counted as held
_TASK_WEIGHTS = ("linear", "root", "none")


@dataclass(frozen=True)
class Nft(Loss):
    """-log r for right rollouts and -log((1 - p r) / (1 - p)) for wrong ones, r = policy / behaviour, per token.

    Where r = 1 the gradient is the policy gradient's: with `linear` task weights (1 - p) Dr. GRPO's, with `root`
    sqrt((1 - p) / p) GRPO's. p is the group's pass rate, so no gate may drop single rollouts; groups without contrast
    should be dropped. negative_weight 0 is fine-tuning on right rollouts only.
    """

    negative_floor: float = 1.0  # floor of the negative ratio; acts on tokens of wrong rollouts with r > 1
    positive_floor: float = 0.0  # floor of the ratio of tokens of right rollouts
    negative_weight: float = 1.0  # weight of wrong rollouts; 0 imitates right ones only
    task_weight: str = "linear"  # linear (1 - p), root (sqrt((1 - p) / p)) or none
    threshold: float = 1.0  # least success of a right rollout
    weight: float = 1.0

    scope: ClassVar[str] = "group"
    min_group: ClassVar[int] = 2  # a pass rate needs more than one rollout
    contains_ratio: ClassVar[bool] = True  # a correction on top would count it twice
    needs_distance: ClassVar[bool] = True

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.task_weight not in _TASK_WEIGHTS:
            raise ConfigurationError(
                f"Nft has no task weight {self.task_weight!r}: {nearest(self.task_weight, _TASK_WEIGHTS)}"
            )

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        right = is_right(batch, self.threshold)  # [A]
        rate = group_mean(right.to(output.logprobs.dtype), batch).clamp(_LOWEST, _HIGHEST)  # [A]
        log_ratio = batch.log_ratio(output.logprobs, batch.behavior_logprobs).clamp(max=_LARGEST)  # [T]
        ratio, pass_rate, good = log_ratio.exp(), batch.on_tokens(rate), batch.on_tokens(right)  # [T]
        negative = (1 - pass_rate * ratio) / (1 - pass_rate)
        fit = torch.where(
            good, _floored(ratio, self.positive_floor), _floored(negative, self.negative_floor)
        ).log()  # [T]
        weights = batch.on_tokens(self._task_weights(rate) * torch.where(right, 1.0, self.negative_weight))
        loss = torch.where(batch.trainable, -weights * fit, 0.0)
        held = (~good & (negative < self.negative_floor - _NOISE)).to(loss.dtype)
        return loss, {"pass_rate": batch.metric(pass_rate), "held_share": batch.metric(held)}

    def _task_weights(self, rate: Tensor) -> Tensor:
        """Task weights, larger for hard tasks: [A]."""
        if self.task_weight == "linear":
            return 1 - rate
        return ((1 - rate) / rate).sqrt() if self.task_weight == "root" else torch.ones_like(rate)


def _floored(ratio: Tensor, floor: float) -> Tensor:
    """max(ratio, floor) in value with the gradient of ratio, which a plain clamp would set to 0."""
    least = max(floor, torch.finfo(ratio.dtype).tiny)  # a ratio of 0 has no logarithm
    return ratio + (ratio.clamp(min=least) - ratio).detach()


def nft(
    setting: Setting = Setting(),
    task_weight: str = "linear",  # linear (on-policy: Dr. GRPO's gradient), root (GRPO's) or none
    negative_weight: float = 1.0,  # weight of wrong rollouts; 0 imitates right ones only
) -> Run:
    """Supervised loss with the group's pass rate; no advantage."""
    return setting.run(
        "nft",
        Constant(),
        (Nft(task_weight=task_weight, negative_weight=negative_weight),),
        gates=(ZeroVariance(),),
        reduction=ConstantLength(setting.max_tokens),
        minibatches=4,
    )
