"""Pairwise preference losses: DPO, IPO, ORPO, SimPO.

Papers: cpl, dpo, ipo, orpo, simpo
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from strop.errors import ConfigurationError
from strop.roles import Loss
from strop.training.arithmetic.ratios import check_policy
from strop.training.arithmetic.siblings import margins, num_tokens, sides
from strop.training.batch import Batch, Output
from strop.training.requirements import Logprobs, Need
from strop.types import Metrics

# Direct preference optimization (Rafailov et al., 2305.18290): the chosen against the rejected rollout.
#
# With a margin by the difference of search values it is Step-APO (2409.08642): its pairs are two steps of one state,
# their rewards are Q, and the difference of Q is that of the advantages.


@dataclass(frozen=True)
class Dpo(Loss):
    """L = -log sigmoid(beta * h), h = log(policy / reference) of the chosen rollout minus that of the rejected one.

    With `apart`, -log sigmoid(beta * h - apart * (its reward - the other's)): outside beta, and without a gradient.

    A group is one pair; the higher reward is chosen. Every token has its pair's whole loss, so the sequence-mean
    reduction (1 / (rollouts * N) per token) gives the mean over pairs. Equal rewards give log 2 and no gradient.
    """

    beta: float = 0.1  # scale of the implicit reward log(policy / reference)
    weight: float = 1.0  # weight of this loss among others
    against: str = "reference"  # or old: the weights that sampled the pair, for rounds that restart from them
    apart: float = 0.0  # weight of the reward difference, the margin that h has to exceed

    scope: ClassVar[str] = "group"

    def __post_init__(self) -> None:
        check_policy(self.against, ("reference", "old"), self)

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset({Logprobs(self.against)})

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        gains = batch.per_rollout(batch.log_ratio(output.logprobs, batch.logprobs_of(self.against)))
        side = _side(batch).to(gains.dtype)  # [A]
        between = _per_group(side * batch.rewards.to(gains.dtype), batch)  # [G]
        margins = self.beta * _per_group(side * gains, batch) - self.apart * between  # [G]
        on_tokens = batch.on_tokens(margins[batch.groups])  # [T]
        loss = torch.where(batch.trainable, functional.softplus(-on_tokens), 0.0)  # -log sigmoid(x) = softplus(-x)
        metrics = {"preferred_share": batch.metric((on_tokens > 0).to(loss.dtype)), "margin": batch.metric(on_tokens)}
        if self.apart:
            metrics["reward_margin"] = batch.metric(batch.on_tokens(between[batch.groups]))
        return loss, metrics


def _side(batch: Batch) -> Tensor:
    """+1 for the chosen rollout of each pair, -1 for the rejected one, 0 for both where rewards are equal: [A]."""
    sizes = _per_group(torch.ones_like(batch.rewards), batch)  # [G]
    if not bool((sizes == 2).all()):
        counts = sorted({int(size) for size in sizes})
        raise ConfigurationError(f"Dpo needs groups of exactly 2 rollouts, got {counts}: add the gate BestAndWorst")
    means = _per_group(batch.rewards, batch) / 2  # [G]
    return torch.sign(batch.rewards - means[batch.groups])


def _per_group(values: Tensor, batch: Batch) -> Tensor:
    """Sum an [A] quantity over each group: [G]."""
    return values.new_zeros(len(batch.group_numbers)).index_add(0, batch.groups, values)


# Identity preference optimization (IPO, 2310.12036): a finite target margin for each preference.


@dataclass(frozen=True)
class Ipo(Loss):
    """(h - 1 / (2 tau))^2, h = log(policy / reference) of the chosen rollout minus that of the rejected one.

    The paper's h is a sum over tokens; `is_averaged` divides it by the length, as its authors later did. A group is one
    pair and every token has the pair's loss, for the sequence-mean reduction. A tie has no loss.
    """

    tau: float = 0.1  # the target margin is 1 / (2 tau)
    is_averaged: bool = False  # log-ratios per token
    weight: float = 1.0

    needs: ClassVar[frozenset[Need]] = frozenset({Logprobs("reference")})
    scope: ClassVar[str] = "group"

    def __post_init__(self) -> None:
        if self.tau <= 0:
            raise ConfigurationError(f"Ipo needs tau > 0, got {self.tau}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        gains = batch.per_rollout(batch.log_ratio(output.logprobs, batch.logprobs_of("reference")))  # [A]
        gains = gains / num_tokens(batch, output.logprobs) if self.is_averaged else gains
        margin = margins(gains, batch, self)[batch.groups]  # [A]
        each = torch.where(sides(batch, self) != 0, (margin - 1 / (2 * self.tau)).square(), 0.0)
        loss = torch.where(batch.trainable, batch.on_tokens(each), 0.0)
        return loss, {"margin": batch.metric(batch.on_tokens(margin))}


# Odds-ratio preference optimization (ORPO, 2403.07691): imitate the chosen rollout and raise its odds.


@dataclass(frozen=True)
class Orpo(Loss):
    """-log policy per token of the chosen rollout - odds * log s(log odds_c - log odds_r), odds = P / (1 - P).

    P = exp(mean log-probability per token); no reference. Every token has its pair's loss. The chosen rollout alone has
    the likelihood term, doubled, because the sequence-mean reduction halves it. A tie has no loss.
    """

    odds: float = 0.1  # weight of the odds ratio relative to the likelihood
    weight: float = 1.0

    scope: ClassVar[str] = "group"

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        mean = batch.per_rollout(output.logprobs) / num_tokens(batch, output.logprobs)  # [A]
        margin = margins(_log_odds(mean), batch, self)[batch.groups]  # [A]
        side = sides(batch, self).to(mean.dtype)
        chosen, is_pair = (side > 0).to(mean.dtype), (side != 0).to(mean.dtype)
        each = -2 * chosen * mean + self.odds * is_pair * functional.softplus(-margin)
        loss = torch.where(batch.trainable, batch.on_tokens(each), 0.0)
        return loss, {"margin": batch.metric(batch.on_tokens(margin))}


def _log_odds(logprob: Tensor) -> Tensor:
    """log(P / (1 - P)), with 1 - P = -expm1(log P); clamped where P is 1: [A]."""
    below = logprob.clamp(max=-1e-6)
    return below - torch.log(-torch.expm1(below))


# SimPO (2405.14734): preferences by mean log-probability, against a margin instead of a reference.


@dataclass(frozen=True)
class SimPo(Loss):
    """-log s(beta * (mean log policy of the chosen rollout - that of the rejected one) - gamma).

    A group is one pair and every token has the pair's loss, for the sequence-mean reduction. A tie has no loss.
    """

    beta: float = 2.0  # scale of mean log-probabilities
    gamma: float = 1.0  # the target margin
    weight: float = 1.0

    scope: ClassVar[str] = "group"

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        mean = batch.per_rollout(output.logprobs) / num_tokens(batch, output.logprobs)  # [A]
        margin = self.beta * margins(mean, batch, self)[batch.groups]  # [A]
        each = torch.where(sides(batch, self) != 0, functional.softplus(self.gamma - margin), 0.0)
        loss = torch.where(batch.trainable, batch.on_tokens(each), 0.0)
        return loss, {"margin": batch.metric(batch.on_tokens(margin))}
