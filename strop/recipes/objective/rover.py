"""ROVER: Q-values of the uniformly random policy, learned as log-ratios of policy and old policy by regression.

Title: Random Policy Valuation is Enough for LLM Reasoning with Verifiable Rewards
Paper: arXiv 2509.24981 (2025)
Claim: 8.2 points more pass@1, 16.8 more pass@256 and 17.6 % more diversity.
Reading: Every token has the rollout's centred reward, as released; in theory only the last token has it. Four optimizer
    steps per batch and temperature 0.6 are those of the release's script for mathematics. That script also divides by
    the group's standard deviation; the script for countdown does not, and neither does this recipe.
Acts: q != 0 and next_q != 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.recipes.setting import Setting
from strop.roles import Loss
from strop.run import Run
from strop.training.advantages.group_relative import GroupMean
from strop.training.arithmetic.siblings import following
from strop.training.batch import Batch, Output
from strop.training.requirements import Logits, Need
from strop.types import Metrics

# ROVER (2509.24981). In theory Q(s, a) = r + mean over all a' of Q(s', a') is the value of the uniformly random policy,
# and acting greedily on it is optimal on a tree of 0/1 rewards.


@dataclass(frozen=True)
class Rover(Loss):
    """(Q(s_t, y_t) - A - mean over the vocabulary of Q(s_t+1, .))^2, Q = scale * (log policy - log proximal).

    Only Q(s_t, y_t) carries a gradient; after the last token the mean is 0. A is the rollout's centred reward.
    """

    scale: float = 1.0  # scale of the log-ratio that is Q
    weight: float = 1.0

    needs: ClassVar[frozenset[Need]] = frozenset({Logits("proximal")})
    scope: ClassVar[str] = "rollout"
    contains_ratio: ClassVar[bool] = True  # a regression, not an expectation under the policy: no importance weights
    needs_distance: ClassVar[bool] = True

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        both = self.scale * output.over_both(_advance, "proximal")  # [T, 2]
        value, mean = both.select(1, 0), both.select(1, 1).detach()  # [T]
        target = batch.advantages + following(mean, batch)
        loss = torch.where(batch.trainable, (value - target).square(), 0.0)
        return loss, {"q": batch.metric(value), "next_q": batch.metric(following(mean, batch))}


def _advance(logits: Tensor, proximal: Tensor, tokens: Tensor) -> Tensor:
    """log(policy / proximal) of the token, and its mean over the vocabulary: [C, 2]."""
    difference = logits.log_softmax(-1) - proximal.log_softmax(-1)
    return torch.stack([difference.gather(1, tokens.unsqueeze(1)).squeeze(1), difference.mean(-1)], 1)


def rover(
    setting: Setting = Setting(temperature=0.6),
    scale: float = 1.0,  # scale of the log-ratio that is Q
) -> Run:
    """Regression of Q to the centred reward plus the mean Q of the next state."""
    return setting.run("rover", GroupMean(), (Rover(scale),), minibatches=4)
