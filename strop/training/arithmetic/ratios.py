"""Importance ratios between policies, clipped surrogates, and weights towards a target policy."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from strop.errors import ConfigurationError, nearest
from strop.roles import Correction
from strop.training.batch import Batch
from strop.training.requirements import Logprobs, Need
from strop.types import Metrics

# From the policy that sampled to the one being trained: policy / behaviour = (middle / behaviour) * (policy / middle).
#
# A correction weighs the first factor, a loss with the middle policy as its anchor contains the second; preflight
# checks that both name the same middle, so no part is counted twice or left out.

FROZEN = ("proximal", "old", "averaged")  # policies that a trainer can score before a step


def check_policy(name: str, valid: tuple[str, ...], owner: object) -> None:
    """Refuse a policy that is not one of these."""
    if name not in valid:
        raise ConfigurationError(f"{type(owner).__name__} has no policy {name!r}: {nearest(name, valid)}")


def needed(name: str) -> frozenset[Need]:
    """The needs that make this policy's logprobs available."""
    return frozenset({Logprobs(name)} if name in FROZEN else ())


def with_sampler(batch: Batch, current: Tensor) -> Batch:
    """The batch with behavior logprobs for every token: those of version -1 (a teacher's) get the current policy's.

    Their ratio is 1 and has the gradient of log policy. Their recorded logprob is 0, which would make the ratio the
    policy's own probability.
    """
    sampler = torch.where(batch.versions >= 0, batch.behavior_logprobs, current.detach())
    return replace(batch, behavior_logprobs=sampler)


def log_weights(name: str, batch: Batch, current: Tensor) -> Tensor:
    """log(policy / behaviour) per token, detached: [T], 0 for tokens of version -1 (a teacher's)."""
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


def clipped_loss(ratio: Tensor, batch: Batch, low: float, high: float, dual: float | None) -> tuple[Tensor, Metrics]:
    """The clipped surrogate as a loss per token [T], with the share that clipping changed and the ratio."""
    objective = clipped(ratio, batch.advantages, low, high, dual)  # [T]
    loss = torch.where(batch.trainable, -objective, 0.0)
    changed = (objective != ratio * batch.advantages).to(loss.dtype)
    return loss, {"clipped_share": batch.metric(changed), "ratio": batch.metric(ratio)}


# Base of corrections that weigh tokens towards a target policy.


class Targeted(Correction):
    """Correction with a `target` policy, which it checks and needs."""

    target: str

    def __post_init__(self) -> None:
        check_policy(self.target, ("current", *FROZEN), self)

    @property
    def needs(self) -> frozenset[Need]:
        return needed(self.target)
