"""DPPO: contrastive loss on pairs of sibling rollouts by likelihood per token; no reward model, no reference.

Title: Direct Preference-based Policy Optimization without Reward Modeling
Paper: arXiv 2301.12842 (2023)
Claim: As good as or better than learning a reward model first, on control tasks and in fine-tuning language models.
Reading: Our reading: the distance of a policy to a completion is its negative log-likelihood per token. Pairs are
    siblings with different rewards.
Left out: The preference model of the first stage, and pairs across tasks.
Acts: preferred_share > 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from strop.errors import ConfigurationError
from strop.filter.gates.zero_variance import ZeroVariance
from strop.recipes.setting import Setting
from strop.roles import Loss
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.arithmetic.siblings import mean_over_pairs, num_tokens, ordered_pairs
from strop.training.batch import Batch, Output
from strop.training.reductions.means import SequenceMean
from strop.types import Metrics


@dataclass(frozen=True)
class DirectPreference(Loss):
    """-log(e^-d_i / (e^-d_i + e^(-conservatism * d_j))) over all siblings with R_i > R_j, d = distance / temperature.

    A rollout's distance is its negative log-likelihood per token. Conservatism below 1 pushes less away from the worse
    rollout. At 1 this is SimPO without its margin, with beta = 1 / temperature. Ties make no pair. Every token carries
    its group's whole loss.
    """

    temperature: float = 0.1  # divisor of the distances
    conservatism: float = 1.0  # scale of the worse rollout's distance; below 1 it is pushed away less
    weight: float = 1.0

    scope: ClassVar[str] = "group"
    min_group: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise ConfigurationError(f"DirectPreference needs temperature > 0, got {self.temperature}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        distance = -batch.per_rollout(output.logprobs) / num_tokens(batch, output.logprobs) / self.temperature  # [A]
        better, worse = ordered_pairs(batch)  # [P]
        each = functional.softplus(distance[better] - self.conservatism * distance[worse])
        loss = torch.where(batch.trainable, batch.on_tokens(mean_over_pairs(each, (better, worse), batch)), 0.0)
        is_nearer = mean_over_pairs((distance[better] < distance[worse]).to(loss.dtype), (better, worse), batch)
        return loss, {"preferred_share": batch.metric(batch.on_tokens(is_nearer))}


def direct_preference(
    setting: Setting = Setting(),
    temperature_of_distance: float = 0.1,  # divisor of the distances in the loss
    conservatism: float = 1.0,  # scale of the worse rollout's distance; below 1 it is pushed away less
) -> Run:
    """DPPO on all pairs of siblings with different rewards."""
    losses = (DirectPreference(temperature_of_distance, conservatism),)
    return setting.run("direct_preference", Constant(), losses, gates=(ZeroVariance(),), reduction=SequenceMean())
