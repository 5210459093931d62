"""RAPO: GRPO with a forward KL penalty to a reward-tempered reference policy, and an entropy bonus.

Title: Unlocking Reasoning Capabilities in LLMs via Reinforcement Learning Exploration
Paper: arXiv 2510.03865 (2025)
Claim: Models of 3B and 7B solve tasks that their base model never does.
Reading: The paper does not print how the reward tempers the reference. Here the exponent is
    floor + (1 - floor) * reward.
Acts: tempered_kl > 0
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
from strop.training.advantages.group_relative import GroupStandard
from strop.training.batch import Batch, Output
from strop.training.losses.clip import Clip
from strop.training.losses.entropy import Entropy
from strop.training.reductions.means import SequenceMean
from strop.training.requirements import Logits, Need
from strop.types import Metrics


@dataclass(frozen=True)
class TemperedKl(Loss):
    """KL(tempered || policy), tempered ~ reference^phi, phi = floor + (1 - floor) * reward, reward clipped to [0, 1].

    The lower the reward, the flatter the tempered reference (2510.03865); phi is our reading. On the policy's samples
    with u = tempered / policy, the loss -u log policy with u detached has the gradient of the forward KL. The
    derivative of its sampled value u log u - u + 1 has not.
    """

    floor: float = 0.5  # exponent of the reference at reward 0
    cap: float = 10.0  # largest u, which is unbounded where the policy's probability is small
    weight: float = 0.01

    needs: ClassVar[frozenset[Need]] = frozenset({Logits("reference")})
    scope: ClassVar[str] = "rollout"

    def __post_init__(self) -> None:
        if not 0 <= self.floor <= 1:
            raise ConfigurationError(f"TemperedKl needs 0 <= floor <= 1, got {self.floor}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        rewards = batch.rewards.to(output.logprobs.dtype).clamp(0, 1)
        power = batch.on_tokens(self.floor + (1 - self.floor) * rewards)  # [T]
        target = output.over_both(_tempered, "reference", power)  # [T]
        log_ratio = batch.log_ratio(target, output.logprobs).detach()  # [T]
        ratio = log_ratio.exp()
        loss = torch.where(batch.trainable, -ratio.clamp(max=self.cap) * output.logprobs, 0.0)
        return loss, {
            "tempered_kl": batch.metric(ratio * log_ratio - ratio + 1),
            "capped_share": batch.metric((ratio > self.cap).to(loss.dtype)),
        }


def _tempered(logits: Tensor, reference: Tensor, tokens: Tensor, power: Tensor) -> Tensor:
    """Log-probability of the token under reference^power, normalized: [C]."""
    flat = (power.unsqueeze(1) * reference.log_softmax(-1)).log_softmax(-1)
    return flat.gather(1, tokens.unsqueeze(1)).squeeze(1)


def rapo(
    setting: Setting = Setting(),
    kl: float = 0.01,  # weight of the forward KL penalty
    entropy: float = 0.001,  # weight of the entropy bonus
    floor: float = 0.5,  # exponent of the reference at reward 0
) -> Run:
    """GRPO with a forward KL penalty to a reward-tempered reference, and an entropy bonus."""
    losses = (Clip(), TemperedKl(floor, weight=kl), Entropy(entropy))
    return setting.run("rapo", GroupStandard(), losses, reduction=SequenceMean())
