"""AReaL: asynchronous generation with bounded staleness and decoupled PPO, clipped around a proximal policy; no critic.

Title: AReaL: A Large-Scale Asynchronous Reinforcement Learning System for Language Reasoning
Paper: arXiv 2505.24298 (2025)
Claim: Up to 2.57 times as fast as synchronous systems on the same GPUs, at equal or better accuracy.
Reading: `anchor` is the policy in the denominator of the clipped ratio: proximal (the weights before the step, AReaL's
    own), averaged (PPO-EWMA, 2110.00641) or interpolated (A-3PO, 2512.06547). A token's version is stamped by the
    engine; the released client reads it after the segment returned.
Acts: lag > 0 and clipped_share > 0
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
from strop.training.advantages.batch_relative import BatchStandard
from strop.training.arithmetic.ratios import FROZEN, check_policy, clipped, needed
from strop.training.batch import Batch, Output
from strop.training.requirements import Need
from strop.training.trainers.torch import TorchTrainer
from strop.types import Metrics

# Decoupled PPO (Hilton et al., 2110.00641; AReaL, 2505.24298): the behaviour policy is not the anchor of the clip.
#
# Anchors: `proximal` recomputes logprobs with the weights before the step (AReaL), `averaged` uses a running average of
# the weights (PPO-EWMA), `interpolated` needs no forward pass (A-3PO, 2512.06547). The last one adds no information: a
# clip of 1 + e on policy / anchor is one of (1 + e)^(1 / (1 - a)) on policy / behaviour.


@dataclass(frozen=True)
class Decoupled(Loss):
    """-w * min(r A, clip(r) A) with the constant w = anchor / behaviour and r = policy / anchor.

    A token with w > cap is masked and stays in the denominator. w is always applied: without it the loss is biased.
    With one optimizer step per batch and the proximal anchor, r = 1 and nothing is clipped.
    """

    low: float = 0.2  # lower clip range: ratios are at least 1 - low
    high: float = 0.2  # upper clip range: ratios are at most 1 + high
    cap: float = 5.0  # tokens with a larger weight are masked
    dual: float | None = None  # > 1: for A < 0 the surrogate's loss is at most dual * |A|
    anchor: str = "proximal"  # proximal, averaged, interpolated or old
    weight: float = 1.0  # of this loss relative to others

    scope: ClassVar[str] = "rollout"
    contains_ratio: ClassVar[bool] = True  # a correction on top would count it twice
    needs_distance: ClassVar[bool] = True
    corrects: ClassVar[bool] = (
        True  # the weight is relative to the sampling distribution, which truncation would change
    )

    def __post_init__(self) -> None:
        check_policy(self.anchor, (*FROZEN, "interpolated"), self)
        if self.dual is not None and self.dual <= 1:
            raise ConfigurationError(f"Decoupled needs dual > 1, or it would bind on-policy, got {self.dual}")

    @property
    def needs(self) -> frozenset[Need]:
        return needed(self.anchor)

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        anchor = self._anchor_logprobs(output.logprobs.detach(), batch)  # [T]
        mismatch = batch.log_ratio(anchor, batch.behavior_logprobs)  # [T]
        weight = mismatch.where(batch.versions >= 0, mismatch.new_zeros(())).exp()  # [T], 1 for a teacher's tokens
        kept = weight <= self.cap  # [T]
        ratio = batch.log_ratio(output.logprobs, anchor).exp()  # [T]
        objective = clipped(ratio, batch.advantages, self.low, self.high, self.dual)  # [T]
        loss = torch.where(batch.trainable & kept, -weight * objective, 0.0)
        return loss, {
            "clipped_share": batch.metric((objective != ratio * batch.advantages).to(loss.dtype)),
            "masked_share": batch.metric((~kept).to(loss.dtype)),
        }

    def _anchor_logprobs(self, current: Tensor, batch: Batch) -> Tensor:
        if self.anchor != "interpolated":
            return batch.logprobs_of(self.anchor)
        share = _interpolation(batch)  # [T]
        return batch.behavior_logprobs + share * batch.log_ratio(current, batch.behavior_logprobs)


def _interpolation(batch: Batch) -> Tensor:
    """(lag - 1) / lag, the anchor's position from behaviour to policy; 0 at lag <= 1 and for a teacher's tokens."""
    lag = (batch.version - batch.versions).to(batch.share.dtype)  # [T]
    is_stale = (lag > 1) & (batch.versions >= 0)
    return torch.where(is_stale, (lag - 1) / lag.clamp(min=1), 0.0)


def areal(
    setting: Setting = Setting(lag=4),
    anchor: str = "proximal",  # policy around which the ratio is clipped: proximal, averaged or interpolated
    minibatches: int = 4,  # optimizer steps per training batch
) -> Run:
    """No critic, no reference policy; advantages standardized over the batch, several clipped steps per batch."""
    window = max(setting.lag, 1) if anchor == "averaged" else 0
    trainer = TorchTrainer(learning_rate=setting.learning_rate, device=setting.device, average_window=window)
    return setting.run("areal", BatchStandard(), (Decoupled(anchor=anchor),), minibatches=minibatches, trainer=trainer)
