"""What one step minimizes: losses, each times its weight, the reduction's share and the off-policy correction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from strop.roles import Correction, Loss, Metrics, Output
from strop.types import Batch


@dataclass(frozen=True)
class Objective:
    """A pure function of a batch; summed over a step's batches, its loss and figures are those of the whole step."""

    losses: Sequence[Loss]
    correction: Correction | None = None

    @property
    def needs(self) -> frozenset[str]:
        """Batch fields the trainer must fill first."""
        of_correction: frozenset[str] = frozenset() if self.correction is None else self.correction.needs
        return of_correction.union(*(loss.needs for loss in self.losses))

    @property
    def scope(self) -> str:
        """The smallest unit a micro-batch may not split."""
        return "group" if any(loss.scope == "group" for loss in self.losses) else "attempt"

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        share = batch.share
        metrics: Metrics = {}
        if self.correction is not None:
            correction = self.correction(output.logprobs, batch).detach()  # [T]
            share = share * correction
            metrics["correction"] = float(_token_mean(correction, batch))
        total = output.logprobs.new_zeros(())
        for loss in self.losses:
            per_token, figures = loss(output, batch)
            # a loss may be anything, even infinite, at tokens the policy did not write
            total = total + loss.weight * (share * per_token.where(batch.trainable, per_token.new_zeros(()))).sum()
            _merge(metrics, figures, type(loss).__name__)
        return total, metrics | policy_figures(output, batch)


def policy_figures(output: Output, batch: Batch) -> Metrics:
    """Means over the step's written tokens: entropy, and how far the policy stands from the one that wrote them."""
    log_ratio = batch.log_ratio(output.logprobs.detach(), batch.behavior_logprobs)  # [T]
    ratio = log_ratio.exp()
    figures = {
        "entropy": output.entropy.detach(),
        "mismatch": log_ratio.abs(),
        "ratio": ratio,
        "kl_behavior": ratio - 1 - log_ratio,  # unbiased for KL(behavior || policy), and never negative
    }
    means = torch.stack([_token_mean(values, batch) for values in figures.values()]).tolist()  # one transfer for all
    return dict(zip(figures, means, strict=True))


def _token_mean(values: Tensor, batch: Batch) -> Tensor:
    """This batch's part of the mean over all written tokens of the step."""
    count = batch.step_tokens or int(batch.trainable.sum())
    return values.where(batch.trainable, values.new_zeros(())).sum() / count


def _merge(metrics: Metrics, figures: Metrics, owner: str) -> None:
    """Add figures under their own names, or under their owner's where two losses report the same."""
    for name, value in figures.items():
        metrics[name if name not in metrics else f"{owner}.{name}"] = value
