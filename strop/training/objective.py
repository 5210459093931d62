"""Objective of a step: weighted losses times the reduction's shares and the off-policy correction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from strop.capabilities import inside
from strop.errors import ConfigurationError
from strop.roles import Correction, Loss
from strop.training.arithmetic.ratios import log_weights, with_sampler
from strop.training.batch import Batch, Output, as_metric
from strop.training.requirements import Aux, Logprobs, Need
from strop.types import Metrics


@dataclass(frozen=True)
class Objective:
    """Pure function of a batch; summed over a step's batches, its loss and metrics are those of the whole step."""

    losses: Sequence[Loss]
    correction: Correction | None = None

    @property
    def _all(self) -> list[Loss]:
        """All losses, including those nested in others."""
        return inside(list(self.losses), Loss)

    @property
    def needs(self) -> frozenset[Need]:
        """Quantities that the trainer must fill first."""
        of_correction: frozenset[Need] = frozenset() if self.correction is None else self.correction.needs
        asked = of_correction.union(*(loss.needs for loss in self._all))
        return frozenset(need for need in asked if not isinstance(need, Aux))

    @property
    def aux(self) -> frozenset[str]:
        """Names of `Turn.aux` that the batch must contain."""
        return frozenset(need.name for loss in self._all for need in loss.needs if isinstance(need, Aux))

    @property
    def scope(self) -> str:
        """The smallest unit that a micro-batch may not split."""
        return "group" if any(loss.scope == "group" for loss in self._all) else "rollout"

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        batch = with_sampler(batch, output.logprobs)
        share = batch.share
        metrics: Metrics = {}
        if self.correction is not None:
            correction = self.correction(output.logprobs, batch).detach()  # [T]
            share = share * correction
            metrics["correction"] = as_metric(batch.token_mean(correction))
        total = output.logprobs.new_zeros(())
        for loss in self.losses:
            per_token, own = loss(output, batch)
            covered, parts = _covered(loss, batch, share)
            # a loss may be anything, even infinite, at tokens it does not cover
            total = total + loss.weight * (parts * per_token.where(covered, per_token.new_zeros(()))).sum()
            _merge(metrics, own, type(loss).__name__)
        if Logprobs("averaged") in self.needs:  # alive_share is the metric that shows the effect of averaging
            metrics["alive_share"] = _alive_share(total, output.logprobs, batch)
        return total, metrics | policy_metrics(output, batch)


def _covered(loss: Loss, batch: Batch, share: Tensor) -> tuple[Tensor, Tensor]:
    """The tokens that a loss covers and their shares [T]: the policy's, or the environment's if declared."""
    if loss.covers != "observed":
        return batch.trainable, share
    if batch.observed is None or batch.observed_share is None:
        raise ConfigurationError(f"{type(loss).__name__} learns from observed tokens, and the batch does not mark them")
    return batch.observed, batch.observed_share


def policy_metrics(output: Output, batch: Batch) -> Metrics:
    """Means over the step's trainable tokens: entropy, and the distance between the policy and the behavior policy.

    `drift` is the whole distance; tokens without a version have none. Only old logprobs separate its two parts:
    `mismatch`, the same weights in two engines, and `staleness`, the same engine with newer weights.
    """
    log_ratio = log_weights("current", batch, output.logprobs)  # [T], 0 at tokens without a version
    ratio = log_ratio.exp()
    metrics = {
        "entropy": output.entropy.detach(),
        "drift": log_ratio.abs(),
        "ratio": ratio,
        "kl_behavior": ratio - 1 - log_ratio,  # unbiased for KL(behavior || policy), and never negative
    }
    if "old" in batch.logprobs:
        metrics["mismatch"] = log_weights("old", batch, output.logprobs).abs()
        metrics["staleness"] = batch.log_ratio(output.logprobs.detach(), batch.logprobs["old"]).abs()
    return {name: as_metric(batch.token_mean(values)) for name, values in metrics.items()}


def _alive_share(total: Tensor, logprobs: Tensor, batch: Batch) -> float:
    """This batch's part of the share of trainable tokens with an advantage that are not masked or clipped away."""
    (gradient,) = torch.autograd.grad(total, logprobs, retain_graph=True)  # [T]; stops at the logprobs, so it is cheap
    is_dead = (gradient == 0) & (batch.advantages != 0)
    return as_metric(batch.token_mean((~is_dead).to(logprobs.dtype)))


def _merge(metrics: Metrics, own: Metrics, owner: str) -> None:
    """Add metrics under their own names, or under the loss's where two losses report the same."""
    for name, value in own.items():
        metrics[name if name not in metrics else f"{owner}.{name}"] = value
