"""DNO: iterative preference optimization on win rates among rollouts and a demonstration, against round weights.

Title: Direct Nash Optimization: Teaching Language Models to Self-Improve with General Preferences
Paper: arXiv 2404.03715 (2024)
Claim: A 7B model wins 33 % against GPT-4-Turbo on AlpacaEval 2, up from 7 %.
Reading: margin 0 regresses all win rates with soft labels, against the policy's own rollouts. margin above 0 takes only
    clear winners, with hard labels: the practical variant. The demonstration's reference policy is the weights that
    its siblings were sampled with.
Left out: Pairs of earlier rounds, the choice of the best round on a validation set, and sampling at temperature 0.7
    with top_p 0.95: rollouts are sampled from the policy itself.
Acts: win_rate != 0.5 and share/teacher > 0 and lag > 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from strop.control.admission.periodic import Periodic
from strop.errors import ConfigurationError
from strop.filter.gates.zero_variance import ZeroVariance
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.strategies.with_demonstrations import Demonstrated
from strop.recipes.setting import Setting
from strop.roles import Loss
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.arithmetic.ratios import check_policy
from strop.training.arithmetic.siblings import is_taught
from strop.training.batch import Batch, Output
from strop.training.reductions.means import SequenceMean
from strop.training.requirements import Logprobs, Need
from strop.training.trainers.torch import TorchTrainer
from strop.types import Metrics


@dataclass(frozen=True)
class Dno(Loss):
    """-[z log s(D) + (1 - z) log s(-D)] over all pairs of siblings, D = eta * difference of their log(policy / old).

    z = s(r_1 - r_2). r is a rollout's win rate against the policy's own rollouts among its siblings; a tie counts half.
    With `is_rated` r is the reward itself, for judges that return win rates. With `margin` only pairs whose r differ by
    at least that much count, with hard labels z = 1: the practical variant, DPO against the weights that sampled the
    pair. It takes win rates over all siblings, demonstrations included. Every token carries its group's whole loss.
    """

    eta: float = 0.1  # scale of the log-ratios
    margin: float | None = (
        None  # least difference of win rates of a pair, with hard labels; None: all pairs, soft labels
    )
    is_rated: bool = False  # whether rewards are win rates already
    against: str = "old"
    weight: float = 1.0

    scope: ClassVar[str] = "group"
    min_group: ClassVar[int] = 2

    def __post_init__(self) -> None:
        check_policy(self.against, ("old", "proximal", "reference"), self)
        if self.margin is not None and self.margin <= 0:
            raise ConfigurationError(f"Dno needs a margin > 0 or none, got {self.margin}")

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset({Logprobs(self.against)})

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        reference = batch.logprobs_of(self.against)
        gains = self.eta * batch.per_rollout(batch.log_ratio(output.logprobs, reference))  # [A]
        opponents = ~is_taught(batch) if self.margin is None else torch.ones_like(batch.groups, dtype=torch.bool)
        rates = (batch.rewards if self.is_rated else win_rates(batch, opponents)).to(gains.dtype)  # [A]
        first, second = self._pairs(rates, batch)  # [P]
        gap = rates[first] - rates[second]
        wanted = torch.sigmoid(gap) if self.margin is None else torch.ones_like(gap)
        each = functional.binary_cross_entropy_with_logits(gains[first] - gains[second], wanted, reduction="none")
        loss = torch.where(batch.trainable, batch.on_tokens(_mean(each, batch.groups[first], batch)), 0.0)
        return loss, {"win_rate": batch.metric(batch.on_tokens(rates))}

    def _pairs(self, rates: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Index pairs of siblings, the better one first; without a margin each pair once, ties included: [P], [P]."""
        same = batch.groups.unsqueeze(1) == batch.groups
        gap = rates.unsqueeze(1) - rates
        chosen = same.triu(1) if self.margin is None else same & (gap >= self.margin - 1e-6)
        first, second = chosen.nonzero(as_tuple=True)
        return first, second


def win_rates(batch: Batch, opponents: Tensor) -> Tensor:
    """Win rate of each rollout against its siblings in the mask `opponents` [A], itself counted as a tie: [A]."""
    beats = (torch.sign(batch.rewards.unsqueeze(1) - batch.rewards) + 1) / 2  # [A, A]
    met = (batch.groups.unsqueeze(1) == batch.groups) & opponents
    return (beats * met).sum(1) / met.sum(1).clamp(min=1)


def _mean(losses: Tensor, groups: Tensor, batch: Batch) -> Tensor:
    """Mean over each group's pairs, on all its rollouts: [A]."""
    empty = losses.new_zeros(len(batch.group_numbers))
    counts = empty.index_add(0, groups, torch.ones_like(losses)).clamp(min=1)
    return (empty.index_add(0, groups, losses) / counts)[batch.groups]


def dno(
    setting: Setting = Setting(),
    period: int = 5,  # training steps per round; all rollouts of a round come from one version
    eta: float = 0.1,  # scale of the log-ratios
    margin: float = 0.0,  # least difference of win rates of a pair, with hard labels; 0: all pairs, soft labels
) -> Run:
    """Rounds of DNO with one demonstration per group; margin 0 is the regression, above 0 the practical variant."""
    trainer = TorchTrainer(learning_rate=setting.learning_rate, device=setting.device, snapshots=period)
    return setting.run(
        "dno",
        Constant(),
        (Dno(eta, margin or None),),
        gates=(ZeroVariance(),),
        strategy=Demonstrated(Demonstrate()),
        reduction=SequenceMean(),
        admission=Periodic(period, setting.steps),
        trainer=trainer,
    )
