"""Loose bounds for undecided tokens, tight ones and a leash for decided ones (Archer).

Title: Stabilizing Knowledge, Promoting Reasoning: Dual-Token Constraints for RLVR
Paper: arXiv 2507.15778 (2025)
Claim: Better than earlier RLVR methods on mathematics and code.
Reading: Two minibatches and three epochs per batch, as released. The leash is averaged over the low tokens of the
    rollout; the release divides by those of the step.
Acts: clipped_share > 0 and high_share > 0 and reference_kl != 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.recipes.setting import Setting
from strop.roles import Loss
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.arithmetic.siblings import num_tokens
from strop.training.batch import Batch, Output
from strop.training.requirements import Logprobs, Need
from strop.types import Metrics

# Archer's dual-token constraints (2507.15778): undecided tokens may move far, decided ones stay near the reference.


@dataclass(frozen=True)
class DualToken(Loss):
    """PPO's clip with `high_clip` above the rollout's entropy quantile and `low_clip` up to it, there with a k3 to the
    reference as well.

    Entropy is that of the current forward pass. The release divides the k3 by all low tokens of the step; here by those
    of the rollout, which does not change when a step is split.
    """

    quantile: float = 0.8  # of entropy, above which a token is undecided
    high_clip: float = 0.5  # of undecided tokens
    low_clip: float = 0.2  # of decided ones
    dual: float = 10.0  # for A < 0 the loss is at most dual * |A|
    kl: float = 0.001  # weight of the penalty on decided ones
    weight: float = 1.0

    needs: ClassVar[frozenset[Need]] = frozenset({Logprobs("reference")})
    scope: ClassVar[str] = "rollout"
    contains_ratio: ClassVar[bool] = True  # a correction on top would count it twice
    needs_distance: ClassVar[bool] = True

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        is_high = self._is_high(output.entropy.detach(), batch)  # [T]
        ratio = batch.log_ratio(output.logprobs, batch.behavior_logprobs).exp()  # [T]
        bound = torch.where(is_high, self.high_clip, self.low_clip).to(ratio.dtype)
        free, held = ratio * batch.advantages, ratio.clamp(1 - bound, 1 + bound) * batch.advantages
        gain = torch.minimum(free, held)
        gain = torch.where(batch.advantages < 0, torch.maximum(gain, self.dual * batch.advantages), gain)
        distance = batch.log_ratio(output.logprobs, batch.logprobs_of("reference"))
        anchor = self._low_weight(is_high, batch) * (torch.expm1(-distance) + distance)  # [T]
        loss = torch.where(batch.trainable, self.kl * anchor - gain, 0.0)
        return loss, {
            "clipped_share": batch.metric((gain != free).to(loss.dtype)),
            "high_share": batch.metric(is_high.to(loss.dtype)),
            "reference_kl": batch.metric(distance),
        }

    def _is_high(self, entropy: Tensor, batch: Batch) -> Tensor:
        """Whether a token's entropy is above the quantile of its own rollout's, linearly interpolated: [T]."""
        limit = entropy.new_zeros(batch.num_rollouts)
        for index in batch.rollouts[batch.trainable].unique().tolist():  # type: ignore[no-untyped-call]
            own = entropy[batch.trainable & (batch.rollouts == index)]
            limit[index] = torch.quantile(own, self.quantile)
        return entropy > batch.on_tokens(limit)

    def _low_weight(self, is_high: Tensor, batch: Batch) -> Tensor:
        """tokens / low tokens of the rollout of low tokens, so that a rollout's mean is that of its low ones: [T]."""
        low = (~is_high).to(batch.share.dtype)
        return low * batch.on_tokens(num_tokens(batch, low) / batch.per_rollout(low).clamp(min=1))


def archer_dual_token(
    setting: Setting = Setting(),
    quantile: float = 0.8,  # of entropy, above which a token is undecided
    kl: float = 0.001,  # weight of the penalty on decided tokens
) -> Run:
    """GRPO's advantages with dual-token constraints; six optimizer steps per batch."""
    losses = (DualToken(quantile, kl=kl),)
    return setting.run("archer_dual_token", GroupStandard(), losses, minibatches=2, epochs=3)
