"""VCPO: REINFORCE with truncated sequence importance weights, minimum-variance baseline and ESS-scaled steps.

Title: Stable Asynchrony: Variance-Controlled Off-Policy RL for LLMs
Paper: arXiv 2602.17616 (2026)
Claim: Stable at 128 steps off-policy, and 2.5 times as fast as synchronous training at equal results in tool use.
Reading: The weights in the baseline are w^2, as in the formula; the release's are about w^4.
Acts: lag > 0
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
from strop.training.advantages.constant import Constant
from strop.training.arithmetic.ratios import sequence_log_weights
from strop.training.batch import Batch, Output
from strop.training.reductions.means import SequenceMean
from strop.training.requirements import Need, ScoreNorms
from strop.training.step_scales.effective_sample_size import EffectiveSampleSize
from strop.training.trainers.torch import TorchTrainer
from strop.types import Metrics

# With w = policy / behaviour of a rollout and g the gradient of its log-probability, the variance of the estimate is
# least for b = sum w^2 |g|^2 R / sum w^2 |g|^2 over siblings. Only the trainer has w and g, so the loss computes the
# advantages.


@dataclass(frozen=True)
class MinimumVariance(Loss):
    """-min(w, cap) * (R - b) / std(R) * log policy; for the sequence-mean reduction and one optimizer step per batch.

    The baseline b uses the untruncated w. It depends on the rollouts it is subtracted from, which is a small bias; a
    truncated w is a bias for any b.
    """

    cap: float = 8.0  # largest importance weight of a rollout
    epsilon: float = 1e-8
    weight: float = 1.0

    needs: ClassVar[frozenset[Need]] = frozenset({ScoreNorms()})
    scope: ClassVar[str] = "group"
    min_group: ClassVar[int] = 2  # a single rollout would be its own baseline
    contains_ratio: ClassVar[bool] = True  # a correction on top would count it twice
    corrects: ClassVar[bool] = (
        True  # its weights are relative to the sampling distribution, which truncation would change
    )

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        if batch.score_norms is None:
            raise ConfigurationError(
                "MinimumVariance needs score_norms, the batch has none: use a trainer that fills them"
            )
        total = sequence_log_weights("current", batch, output.logprobs)  # [A]
        advantages = self._advantages(total, batch.score_norms.to(total.dtype), batch)  # [A]
        capped = total.clamp(max=math.log(self.cap)).exp()  # [A]
        advantage = batch.on_tokens(capped * advantages)  # [T]
        loss = torch.where(batch.trainable, -advantage * output.logprobs, 0.0)
        is_capped = (total > math.log(self.cap)).to(loss.dtype)
        return loss, {"capped_share": batch.metric(batch.on_tokens(is_capped))}

    def _advantages(self, total: Tensor, norms: Tensor, batch: Batch) -> Tensor:
        """(R - b) / std(R): [A]."""
        count, groups = len(batch.group_numbers), batch.groups

        def summed(values: Tensor) -> Tensor:
            return values.new_zeros(count).index_add(0, groups, values)[groups]

        def extreme(values: Tensor, kind: str) -> Tensor:
            return values.new_zeros(count).scatter_reduce(0, groups, values, kind, include_self=False)[groups]

        # equal rewards become exact zeros, so that a tiny deviation divides 0
        rewards = batch.rewards.to(total.dtype) - extreme(batch.rewards.to(total.dtype), "amin")  # [A]
        # only relative weights matter to b, and the largest would overflow
        weights = (2 * (total - extreme(total, "amax"))).exp() * norms  # [A]
        sizes = summed(torch.ones_like(total))
        mean = summed(rewards) / sizes
        mass = summed(weights)
        baseline = torch.where(mass > 0, summed(weights * rewards) / mass.where(mass > 0, mass.new_ones(())), mean)
        deviation = (summed((rewards - mean).square()) / sizes).sqrt()
        return (rewards - baseline) / (deviation + self.epsilon)


def vcpo(
    setting: Setting = Setting(lag=10),
    cap: float = 8.0,  # largest importance weight of a rollout
    full: float = 1.0,  # effective sample size, as a share, at which the step has full size
) -> Run:
    """Sequence-level importance weights and step scaling; no clipping, no reference, one optimizer step per batch."""
    return setting.run(
        "vcpo",
        Constant(),  # the loss computes the advantages, which need gradients
        (MinimumVariance(cap),),
        reduction=SequenceMean(),
        trainer=TorchTrainer(
            learning_rate=setting.learning_rate, device=setting.device, step_scale=EffectiveSampleSize(full)
        ),
    )
