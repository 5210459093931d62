"""Importance ratios between policies, clipped surrogates, and weights towards a target policy."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from strop.errors import ConfigurationError, nearest
from strop.roles import Correction
from strop.training.batch import Batch
from strop.training.requirements import Logprobs, Need

# From the policy that sampled to the one being trained: policy / behaviour = (middle / behaviour) * (policy / middle).
#
# A correction weighs the first factor, a loss that names the middle as its anchor holds the second; preflight sees to
# it that both name the same middle, so no part is counted twice and none is forgotten.

FROZEN = ("proximal", "old", "averaged")  # what a trainer can fill in before a step


def check_policy(name: str, valid: tuple[str, ...], owner: object) -> None:
    """Refuse a policy that is not one of these."""
    if name not in valid:
        raise ConfigurationError(f"{type(owner).__name__} knows no policy {name!r}: {nearest(name, valid)}")


def needed(name: str) -> frozenset[Need]:
    """What the trainer must fill so that this policy's logprobs are there."""
    return frozenset({Logprobs(name)} if name in FROZEN else ())


def with_sampler(batch: Batch, current: Tensor) -> Batch:
    """The batch with a sampler for every token: nobody sampled those of version -1 (a teacher's), so the policy does.

    Their ratio is 1 and carries the gradient of log policy. They hold no log-probability, which is to say 0: taken for
    sampled with certainty, their ratio would be the policy's own probability.
    """
    sampler = torch.where(batch.versions >= 0, batch.behavior_logprobs, current.detach())
    return replace(batch, behavior_logprobs=sampler)


def log_weights(name: str, batch: Batch, current: Tensor) -> Tensor:
    """log(policy / behaviour) per token, detached: [T], 0 for tokens nobody sampled (version -1: a teacher's)."""
    policy = current if name == "current" else batch.logprobs_of(name)
    ratio = batch.log_ratio(policy.detach(), batch.behavior_logprobs)
    return ratio.where(batch.versions >= 0, ratio.new_zeros(()))


def sequence_log_weights(name: str, batch: Batch, current: Tensor) -> Tensor:
    """log(policy / behaviour) of whole rollouts, all turns together: [A]."""
    return batch.per_rollout(log_weights(name, batch, current))


# PPO's clipped surrogate (1707.06347) with an optional dual clip (1912.09729), as a function of the ratio.


def clipped(ratio: Tensor, advantages: Tensor, low: float, high: float, dual: float | None = None) -> Tensor:
    """min(r A, clip(r, 1 - low, 1 + high) A), to be maximized; with `dual`, at least dual * A where A < 0: [T]."""
    objective = torch.minimum(ratio * advantages, ratio.clamp(1 - low, 1 + high) * advantages)
    if dual is None:
        return objective
    return torch.where(advantages < 0, torch.maximum(objective, dual * advantages), objective)


# Corrections that weigh tokens to one policy, which a field names.


class Targeted(Correction):
    """The policy that tokens are weighed to is one that is there, and the trainer is asked for it."""

    target: str

    def __post_init__(self) -> None:
        check_policy(self.target, ("current", *FROZEN), self)

    @property
    def needs(self) -> frozenset[Need]:
        return needed(self.target)
