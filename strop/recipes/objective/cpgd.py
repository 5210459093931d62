"""A policy gradient that stops at a clipped log-ratio, and a drift back to the old policy.

Title: CPGD: Toward Stable Rule-based Reinforcement Learning for Language Models
Paper: arXiv 2505.12504 (2025)
Claim: It does not collapse where GRPO and RLOO do, and is better on multimodal benchmarks.
Reading: The drift's value means nothing; its gradient is that of the KL to the old policy, capped. Tokens are averaged
    by task, as in the paper (a release has the mean over all tokens). Optimizer steps per batch were not found: four.
Left out: Task weights other than 1.
Acts: clipped_share > 0 and kl > 0.001
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Loss
from strop.run import Run
from strop.training.advantages.group_mean import GroupMean
from strop.training.batch import Batch, Output
from strop.training.reductions.group_wise import GroupWise
from strop.types import Metrics

# CPGD (2505.12504): a policy gradient that stops at a clipped log ratio, and a drift back to the old policy.


@dataclass(frozen=True)
class Cpgd(Loss):
    """-min(l A, clip(l, ln(1 - clip), ln(1 + clip)) A) + drift * min(r - 1, cap) * log policy, l = log r.

    Within the bounds the gradient is REINFORCE's, with no ratio in front that could explode. The drift's value means
    nothing: its gradient is that of KL(policy || old), capped, and it acts where the first term is clipped, too.
    """

    clip: float = 0.2  # bound of the log-ratio is that of 1 ± clip
    drift: float = 0.001  # weight of the pull back to the old policy
    cap: float = 2.0  # of that pull
    weight: float = 1.0

    scope: ClassVar[str] = "rollout"
    contains_ratio: ClassVar[bool] = True  # a correction on top would count it twice
    needs_distance: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.clip < 1:
            raise ConfigurationError(f"Cpgd needs 0 < clip < 1, got {self.clip}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        log_ratio = batch.log_ratio(output.logprobs, batch.behavior_logprobs)  # [T]
        held = log_ratio.clamp(math.log(1 - self.clip), math.log(1 + self.clip))
        free = log_ratio * batch.advantages
        gain = torch.minimum(free, held * batch.advantages)  # [T]
        ratio = log_ratio.detach().exp()
        drift = (ratio - 1).clamp(max=self.cap) * output.logprobs
        loss = torch.where(batch.trainable, self.drift * drift - gain, 0.0)
        return loss, {
            "clipped_share": batch.metric((gain != free).to(loss.dtype)),
            "ratio": batch.metric(ratio),
            "kl": batch.metric(ratio - 1 - log_ratio),  # k3 of KL(behaviour || policy)
        }


def cpgd(
    setting: Setting = Setting(),
    clip: float = 0.2,  # bound of the log-ratio is that of 1 ± clip
    drift: float = 0.001,  # weight of the pull back to the old policy
) -> Run:
    """Rewards minus the group's mean; no ratio in front of the gradient."""
    return setting.run("cpgd", GroupMean(), (Cpgd(clip, drift),), reduction=GroupWise(), minibatches=4)
