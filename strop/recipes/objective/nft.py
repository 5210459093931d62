"""Supervised learning on right and wrong rollouts alike.

Title: Bridging Supervised Learning and Reinforcement Learning in Math Reasoning
Paper: arXiv 2505.18116 (2025)
Claim: Better than fine-tuning on right attempts, and level with GRPO and DAPO at 7B and 32B.
Reading: The value of a ratio is held where its gradient is kept, and tokens are summed over a constant, as released.
    The release makes 16 optimizer steps per batch of 512 tasks; four fit a batch of eight groups, two groups each.
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
from strop.training.reductions.constant_length import ConstantLength
from strop.types import Metrics

# Negative-aware fine-tuning (NFT, 2505.18116): supervised learning that also learns from wrong rollouts.
#
# A wrong rollout is likely under an implicit negative policy, (behaviour - p * policy) / (1 - p) with p the task's pass
# rate; fitting that one by likelihood fits the policy. The value of a ratio is held, its gradient is kept, as released.

_LOWEST, _HIGHEST = 0.02, 0.98  # of a pass rate
_LARGEST = 10.0  # of a log ratio
_NOISE = 1e-3  # a ratio of 1 as two engines round it is not counted as held
_TASK_WEIGHTS = ("linear", "root", "none")


@dataclass(frozen=True)
class Nft(Loss):
    """-log r for right rollouts and -log((1 - p r) / (1 - p)) for wrong ones, r = policy / behaviour, per token.

    Where r = 1 the gradient is the policy gradient's: with `linear` task weights (1 - p) Dr. GRPO's, with `root`
    sqrt((1 - p) / p) GRPO's. p is counted over the group, so no gate may trim it; groups without contrast should be
    dropped. negative_weight 0 is fine-tuning on right rollouts alone.
    """

    negative_floor: float = 1.0  # of the negative ratio: held there for a wrong token that became more likely (r > 1)
    positive_floor: float = 0.0  # of the ratio of a right token
    negative_weight: float = 1.0  # of wrong rollouts; 0 imitates right ones only
    task_weight: str = "linear"  # linear, root or none
    threshold: float = 1.0  # the reward of a right rollout
    weight: float = 1.0

    scope: ClassVar[str] = "group"
    min_group: ClassVar[int] = 2  # the pass rate of one rollout says nothing
    contains_ratio: ClassVar[bool] = True  # a correction on top would count it twice
    needs_distance: ClassVar[bool] = True

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
        fit = torch.where(good, _held(ratio, self.positive_floor), _held(negative, self.negative_floor)).log()  # [T]
        weights = batch.on_tokens(self._of_task(rate) * torch.where(right, 1.0, self.negative_weight))
        loss = torch.where(batch.trainable, -weights * fit, 0.0)
        held = (~good & (negative < self.negative_floor - _NOISE)).to(loss.dtype)
        return loss, {"pass_rate": batch.metric(pass_rate), "held_share": batch.metric(held)}

    def _of_task(self, rate: Tensor) -> Tensor:
        """Hard tasks weigh more: [A]."""
        if self.task_weight == "linear":
            return 1 - rate
        return ((1 - rate) / rate).sqrt() if self.task_weight == "root" else torch.ones_like(rate)


def _held(ratio: Tensor, floor: float) -> Tensor:
    """max(ratio, floor) in value with the gradient of ratio: a plain clamp would kill it."""
    least = max(floor, torch.finfo(ratio.dtype).tiny)  # a ratio of 0 has no logarithm
    return ratio + (ratio.clamp(min=least) - ratio).detach()


def nft(
    setting: Setting = Setting(),
    task_weight: str = "linear",  # linear (Dr. GRPO's where on-policy), root (GRPO's) or none
    negative_weight: float = 1.0,  # of wrong rollouts; 0 imitates right ones only
) -> Run:
    """No advantage: the group's pass rate is in the loss; negative_weight 0 imitates right rollouts only."""
    return setting.run(
        "nft",
        Constant(),
        (Nft(task_weight=task_weight, negative_weight=negative_weight),),
        gates=(ZeroVariance(),),
        reduction=ConstantLength(setting.max_tokens),
        minibatches=4,
    )
