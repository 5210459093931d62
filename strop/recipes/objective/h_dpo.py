"""H-DPO: DPO with a coefficient on the policy's log-probability that controls the entropy of the optimum.

Title: Entropy Controllable Direct Preference Optimization
Paper: arXiv 2411.07595 (2024)
Claim: Sharper policies: better pass@k on mathematics than DPO's.
Reading: Online. alpha multiplies the policy's log-probability only; with alpha 1 this is DPO.
Acts: kept_share < 1 and margin != 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.recipes.setting import Setting
from strop.roles import Loss
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.arithmetic.siblings import margins
from strop.training.batch import Batch, Output
from strop.training.reductions.means import SequenceMean
from strop.training.requirements import Logprobs, Need
from strop.types import Metrics


@dataclass(frozen=True)
class HDpo(Loss):
    """-log sigmoid(beta * h), h = (alpha * log policy - log reference) of the chosen rollout minus the rejected one's.

    The optimum is ~ reference^(1 / alpha) * exp(reward / (alpha * beta)): alpha < 1 sharpens, 1 is DPO. A group is one
    pair; every token carries the pair's loss, for the sequence-mean reduction.
    """

    alpha: float = 0.9  # below 1 the optimum is sharper than DPO's
    beta: float = 0.1  # scale of the implicit reward log(policy / reference)
    weight: float = 1.0

    needs: ClassVar[frozenset[Need]] = frozenset({Logprobs("reference")})
    scope: ClassVar[str] = "group"

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        distance = batch.log_ratio(output.logprobs, batch.logprobs_of("reference"))
        if self.alpha != 1:
            distance = distance + (self.alpha - 1) * output.logprobs
        margin = self.beta * margins(batch.per_rollout(distance), batch, self)  # [G]
        margin = batch.on_tokens(margin[batch.groups])  # [T]
        loss = torch.where(batch.trainable, functional.softplus(-margin), 0.0)
        return loss, {"preferred_share": batch.metric((margin > 0).to(loss.dtype)), "margin": batch.metric(margin)}


def h_dpo(
    setting: Setting = Setting(),
    alpha: float = 0.9,  # below 1 the optimum is sharper than DPO's, above 1 flatter
    beta: float = 0.1,  # scale of the implicit reward log(policy / reference)
) -> Run:
    """Entropy-controlled DPO on the best and the worst rollout of each group; alpha 1 is DPO."""
    return setting.run("h_dpo", Constant(), (HDpo(alpha, beta),), gates=(BestAndWorst(),), reduction=SequenceMean())
