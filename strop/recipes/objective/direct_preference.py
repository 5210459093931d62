"""Be nearer to what is preferred than to what is not, with neither reward model nor reference (DPPO).

Title: Direct Preference-based Policy Optimization without Reward Modeling
Paper: arXiv 2301.12842 (2023)
Claim: As good as or better than learning a reward first, on control tasks and in fine-tuning language models.
Reading: The distance of a policy to a text is its negative log-likelihood per token: ours. Pairs are siblings with
    different rewards.
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
from strop.training.reductions.sequence_mean import SequenceMean
from strop.types import Metrics

# Direct preference-based policy optimization (DPPO, 2301.12842): be near what is preferred, with no reference.
#
# For language the distance of the policy to a rollout is read as its negative log-likelihood per token: our reading.


@dataclass(frozen=True)
class DirectPreference(Loss):
    """-log(e^-d_i / (e^-d_i + e^(-conservatism * d_j))) over all siblings with R_i > R_j, d = distance / temperature.

    Conservatism below 1 weakens the push away from the worse rollout. At 1 this is SimPO without its margin, with
    beta = 1 / temperature. Ties make no pair. Every token carries its group's whole loss.
    """

    temperature: float = 0.1  # divides distances
    conservatism: float = 1.0  # below 1 the push away from the worse is weaker
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
    temperature_of_distance: float = 0.1,  # divides distances before they are compared
    conservatism: float = 1.0,  # below 1 the push away from the worse rollout is weaker
) -> Run:
    """All pairs of siblings with different rewards; no reference."""
    losses = (DirectPreference(temperature_of_distance, conservatism),)
    return setting.run("direct_preference", Constant(), losses, gates=(ZeroVariance(),), reduction=SequenceMean())
