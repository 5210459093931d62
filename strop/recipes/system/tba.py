"""TBA: trajectory balance loss on off-policy rollouts from asynchronous generation and replay; no importance ratios.

Title: Trajectory Balance with Asynchrony: Decoupling Exploration and Learning for Fast, Scalable LLM Post-Training
Paper: arXiv 2503.18929 (2025)
Claim: At least 4 times as fast as synchronous training at equal or better results.
Reading: The samples of a task are its group, because endless environments give every task once. `beta` is annealed to
    `last_beta` over the run. From a replayed group, `answers` rollouts are sampled with probabilities
    softmax(sharpness * reward); answers=0 takes all.
Left out: Searchers that own disjoint tasks, and a task's newest 100 distinct answers in place of its group.
Acts: log_normaliser != 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.replay.mostly_recent import MostlyRecent
from strop.roles import Loss
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.batch import Batch, Output
from strop.training.reductions.means import SequenceMean
from strop.training.requirements import Logprobs, Need
from strop.types import Metrics

# Trajectory balance (TBA, 2503.18929), with VarGrad's estimate of the normalizer.


@dataclass(frozen=True)
class TrajectoryBalance(Loss):
    """Mean over siblings of (d - mean d)^2, d = log(policy / reference) of the whole rollout - reward / beta.

    It is 0 exactly at policy ~ reference * exp(reward / beta), for rollouts of any policy, so no correction is needed.
    Every token has its rollout's whole term, so use the sequence-mean reduction. The unit is nats^2 and the gradient
    grows as 1 / beta; TBA anneals beta linearly to `last_beta` in `beta_steps` steps. Both policies are evaluated at
    the sampling temperature.
    """

    beta: float = 0.05  # the optimum is reference * exp(reward / beta)
    weight: float = 1.0
    last_beta: float = 0.05  # beta at the end
    beta_steps: int = 0  # steps of the annealing; 0: constant beta

    needs: ClassVar[frozenset[Need]] = frozenset({Logprobs("reference")})
    scope: ClassVar[str] = "group"
    min_group: ClassVar[int] = 2  # a single rollout has no siblings to balance with
    contains_ratio: ClassVar[bool] = True  # off-policy as it stands: a correction would bias it

    def __post_init__(self) -> None:
        if min(self.beta, self.last_beta) <= 0 or self.beta_steps < 0:
            raise ConfigurationError(
                f"TrajectoryBalance needs beta > 0, last_beta > 0 and beta_steps >= 0, got {self.beta}, "
                f"{self.last_beta} and {self.beta_steps}"
            )

    def beta_at(self, step: int) -> float:
        """Beta after `step` steps."""
        done = min(step / self.beta_steps, 1.0) if self.beta_steps else 0.0
        return self.beta + done * (self.last_beta - self.beta)

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        gains = batch.per_rollout(batch.log_ratio(output.logprobs, batch.logprobs_of("reference")))  # [A]
        surplus = gains - batch.rewards.to(gains.dtype) / self.beta_at(batch.version)  # [A]
        mean = _group_mean(surplus, batch)  # [A]; its gradient cancels within the group
        loss = torch.where(batch.trainable, batch.on_tokens((surplus - mean).square()), 0.0)  # [T]
        return loss, {
            "log_normaliser": batch.metric(batch.on_tokens(-mean)),
            "reference_kl": batch.metric(batch.log_ratio(output.logprobs.detach(), batch.logprobs_of("reference"))),
        }


def _group_mean(values: Tensor, batch: Batch) -> Tensor:
    """Each rollout's group mean of an [A] quantity: [A]."""
    count = len(batch.group_numbers)
    sums = values.new_zeros(count).index_add(0, batch.groups, values)
    sizes = values.new_zeros(count).index_add(0, batch.groups, torch.ones_like(values))
    return (sums / sizes)[batch.groups]


def tba(
    setting: Setting = Setting(lag=2),
    beta: float = 0.05,  # the optimum is reference * exp(reward / beta)
    last_beta: float = 0.05,  # beta at the end of the run
    recent: float = 0.95,  # share of new groups in a step
    answers: int = 0,  # rollouts taken from a replayed group; 0: all
    sharpness: float = 0.0,  # preference for high rewards among them: softmax(sharpness * reward)
) -> Run:
    """Trajectory balance with replay; its optimum is reference * exp(reward / beta)."""
    return setting.run(
        "tba",
        Constant(),
        (TrajectoryBalance(beta, last_beta=last_beta, beta_steps=setting.steps if last_beta != beta else 0),),
        reduction=SequenceMean(),
        buffer=MostlyRecent(recent, seed=setting.seed, answers=answers, sharpness=sharpness),
    )
