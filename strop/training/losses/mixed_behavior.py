"""REX-RAG's correction (2508.08149): the behavior policy of a group is a mixture of the policy and its probes.

Reading: a probe's prefix is not among its tokens, so the probability that rollouts fail does not matter.
Papers: rex-rag
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.roles import Loss
from strop.training.batch import Batch, Output
from strop.training.requirements import PROBES, Logprobs, Need
from strop.types import Metrics, Origin


@dataclass(frozen=True)
class MixedBehavior(Loss):
    """`inner` with the behavior policy (1 - a) * policy + a * probe; a: the probes' share of the batch.

    A probe's sampled tokens are the policy's in both. Inserted tokens (version -1) have the proximal policy's
    probability in the one and their recorded one in the other; tokens of plain rollouts (1 - a) times theirs.
    """

    inner: Loss

    scope: ClassVar[str] = "rollout"
    needs: ClassVar[frozenset[Need]] = frozenset({Logprobs("proximal"), PROBES})
    contains_ratio: ClassVar[bool] = True  # a correction on top would count it twice

    def __post_init__(self) -> None:
        if not self.inner.contains_ratio:
            raise ConfigurationError(
                f"MixedBehavior needs a loss with a ratio to the behavior policy, got {type(self.inner).__name__}"
            )

    @property
    def weight(self) -> float:
        return self.inner.weight

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        mixed, share = self.mixed(batch)
        loss, metrics = self.inner(output, replace(batch, behavior_logprobs=mixed))
        return loss, metrics | {"probes_share": batch.metric(share)}

    def mixed(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the mixture [T], and the share of probes [T]."""
        is_probe = batch.is_of(Origin.BRANCHED)  # [A]
        share = batch.aux[PROBES.name].to(batch.share.dtype)  # [T]
        if bool((batch.on_tokens(is_probe) & (share <= 0)).any()):
            raise ConfigurationError("MixedBehavior got probes with a recorded share of 0: use ProbesCounted")
        recorded = batch.behavior_logprobs
        policy = torch.where(batch.versions < 0, batch.logprobs_of("proximal"), recorded)
        other = torch.where(batch.on_tokens(is_probe), recorded, recorded.new_full((), -torch.inf))
        return torch.logaddexp(policy + torch.log1p(-share), other + share.log()), share
