"""Archer: wide clipping for high-entropy tokens, tight clipping plus a KL penalty for low-entropy tokens.

Title: Stabilizing Knowledge, Promoting Reasoning: Dual-Token Constraints for RLVR
Paper: arXiv 2507.15778 (2025)
Claim: Better than earlier RLVR methods on mathematics and code.
Reading: Two minibatches and three epochs per batch, as released. The KL penalty is averaged over the low-entropy tokens
    of the rollout; the release divides by those of the step.
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
from strop.training.advantages.group_relative import GroupStandard
from strop.training.arithmetic.siblings import num_tokens
from strop.training.batch import Batch, Output
from strop.training.requirements import Logprobs, Need
from strop.types import Metrics

# Archer's dual-token constraints (2507.15778).


@dataclass(frozen=True)
class DualToken(Loss):
    """PPO's clip with range `high_clip` above the rollout's entropy quantile, else `low_clip` and a k3 KL penalty.

    Entropy is that of the current forward pass. The release divides the KL penalty by all low-entropy tokens of the
    step. Here it is divided by those of the rollout, so that splitting a step into micro-batches changes nothing.
    """

    quantile: float = 0.8  # entropy quantile of a rollout; tokens above it are high-entropy tokens
    high_clip: float = 0.5  # clip range of high-entropy tokens
    low_clip: float = 0.2  # clip range of low-entropy tokens
    dual: float = 10.0  # dual clip: for A < 0 the loss is at most dual * |A|
    kl: float = 0.001  # weight of the KL penalty on low-entropy tokens
    weight: float = 1.0

    needs: ClassVar[frozenset[Need]] = frozenset({Logprobs("reference")})
    scope: ClassVar[str] = "rollout"
    contains_ratio: ClassVar[bool] = True  # a correction on top would count it twice
    needs_distance: ClassVar[bool] = True

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        is_high = self._is_high(output.entropy.detach(), batch)  # [T]
        ratio = batch.log_ratio(output.logprobs, batch.behavior_logprobs).exp()  # [T]
        bound = torch.where(is_high, self.high_clip, self.low_clip).to(ratio.dtype)
        free, clipped = ratio * batch.advantages, ratio.clamp(1 - bound, 1 + bound) * batch.advantages
        gain = torch.minimum(free, clipped)
        gain = torch.where(batch.advantages < 0, torch.maximum(gain, self.dual * batch.advantages), gain)
        distance = batch.log_ratio(output.logprobs, batch.logprobs_of("reference"))
        penalty = self._low_weight(is_high, batch) * (torch.expm1(-distance) + distance)  # [T]
        loss = torch.where(batch.trainable, self.kl * penalty - gain, 0.0)
        return loss, {
            "clipped_share": batch.metric((gain != free).to(loss.dtype)),
            "high_share": batch.metric(is_high.to(loss.dtype)),
            "reference_kl": batch.metric(distance),
        }

    def _is_high(self, entropy: Tensor, batch: Batch) -> Tensor:
        """Mask of the tokens whose entropy is above their rollout's quantile, linearly interpolated: [T]."""
        limit = entropy.new_zeros(batch.num_rollouts)
        for index in batch.rollouts[batch.trainable].unique().tolist():  # type: ignore[no-untyped-call]
            own = entropy[batch.trainable & (batch.rollouts == index)]
            limit[index] = torch.quantile(own, self.quantile)
        return entropy > batch.on_tokens(limit)

    def _low_weight(self, is_high: Tensor, batch: Batch) -> Tensor:
        """Number of tokens / number of low-entropy tokens of the rollout; 0 on high-entropy tokens: [T].

        A mean over all tokens of the rollout is then a mean over its low-entropy tokens.
        """
        low = (~is_high).to(batch.share.dtype)
        return low * batch.on_tokens(num_tokens(batch, low) / batch.per_rollout(low).clamp(min=1))


def archer_dual_token(
    setting: Setting = Setting(),
    quantile: float = 0.8,  # entropy quantile of a rollout; tokens above it are high-entropy tokens
    kl: float = 0.001,  # weight of the KL penalty on low-entropy tokens
) -> Run:
    """GRPO advantages with dual-token constraints; six optimizer steps per batch."""
    losses = (DualToken(quantile, kl=kl),)
    return setting.run("archer_dual_token", GroupStandard(), losses, minibatches=2, epochs=3)
