"""Totals of one optimizer step: batches, losses and metrics, fetched from the device at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from torch import Tensor

from strop.backends import Objective
from strop.errors import NumericsError
from strop.training.arithmetic.ratios import sequence_log_weights
from strop.training.batch import Batch, Output
from strop.training.objective import Objective as StepObjective
from strop.types import Metrics

MetricSums: TypeAlias = list[tuple[str, float | Tensor]]  # by name, and by batch; a tensor is still on a GPU


@dataclass(eq=False)
class StepSum:
    """Running totals of one optimizer step."""

    objective: Objective
    batches: list[Batch] = field(default_factory=list)
    losses: list[Tensor] = field(default_factory=list)  # [], each
    metric_sums: MetricSums = field(default_factory=list)
    log_weights: list[Tensor] = field(default_factory=list)  # [A] of each batch

    @property
    def scope(self) -> str:
        """The smallest unit that no part of a batch may split."""
        return self.objective.scope if isinstance(self.objective, StepObjective) else "group"

    def add(self, batches: Sequence[Batch], told: Sequence[tuple[Tensor, Metrics]]) -> None:
        """Loss and metric_sums of each batch."""
        self.batches += batches
        self.losses += [loss for loss, _ in told]
        self.metric_sums += [each for _, metric_sums in told for each in metric_sums.items()]


def fetched(metric_sums: MetricSums, more: Sequence[Tensor]) -> tuple[Metrics, list[float]]:
    """Sums of metric_sums by name and further numbers, from the device by one transfer."""
    held = [value for _, value in metric_sums if isinstance(value, Tensor)]
    wide = [each.to(torch.float64) for each in (*held, *more)]
    numbers = iter(torch.stack(wide).tolist() if wide else [])
    metrics: defaultdict[str, float] = defaultdict(float)
    for name, value in metric_sums:
        metrics[name] += next(numbers) if isinstance(value, Tensor) else value
    return dict(metrics), list(numbers)


def noting(objective: Objective, log_weights: list[Tensor]) -> Objective:
    """The same objective, which also policy statistics log(policy / behaviour) of every rollout."""

    def noted(output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        log_weights.append(sequence_log_weights("current", batch, output.logprobs))
        return objective(output, batch)

    return noted


def refusal(step: int, num_batches: int, guilty: Sequence[Batch], loss: float, norm: float) -> NumericsError:
    """Whose tasks made a number that is not finite."""
    tasks = sorted({task for batch in guilty for task in batch.task_ids})
    return NumericsError(
        f"optimizer step {step}: loss {loss}, gradient norm {norm}, from {len(guilty)} of {num_batches} batches, "
        f"with tasks {', '.join(tasks)}; the weights were not touched"
    )
