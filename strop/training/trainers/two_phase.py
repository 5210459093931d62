"""FixPO (2312.05405): an adaptive KL penalty, then steps on the KL alone until every state is within the bound.

The bound is on the exact KL(before || after) of the next-token distribution at each completion token of the batch, and
on nothing else. Reading: the second phase follows each optimizer step, not each epoch, which a trainer cannot see.

Papers: fixpo
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from strop.backends import Objective
from strop.errors import CheckpointError, ConfigurationError
from strop.roles import Trainer
from strop.training.batch import Batch, Frozen, Output
from strop.training.requirements import Logits, Need, PolicyStatistic
from strop.types import Group, Metrics

_FILE = "two_phase.json"
_WHOLE = frozenset({Logits("proximal")})
_BETAS = (0.9, 0.999)  # of Adam on the penalty's weight


@dataclass
class TwoPhase(Trainer):
    """Trainer that minimizes loss + beta * mean KL, then beta * mean KL alone while any KL exceeds `limit`.

    At most `sweeps` steps follow. beta rises where the largest KL exceeds limit / margin and falls below it, never
    under 0. The bound is relative to the weights before the training batch, also over several minibatches of it.
    """

    inner: Trainer
    limit: float = 0.2  # nats
    margin: float = 2.0  # the penalty aims at limit / margin
    rate: float = 0.01  # learning rate of the penalty's weight
    sweeps: int = 20  # KL-only steps at most

    _multiplier: Multiplier = field(default_factory=lambda: Multiplier(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not (self.limit > 0 and self.margin >= 1 and self.rate > 0 and self.sweeps > 0):
            raise ConfigurationError(f"TwoPhase needs limit, rate and sweeps > 0 and margin >= 1, got {self}")

    @property
    def max_tokens(self) -> int:
        return self.inner.max_tokens

    def open(self, model: Path, seed: int) -> None:
        self.inner.open(model, seed)
        self._multiplier = Multiplier()

    def policy_statistic(self, groups: Sequence[Group], needs: frozenset[PolicyStatistic]) -> None:
        self.inner.policy_statistic(groups, needs)

    def annotate(self, batches: Sequence[Batch], needs: frozenset[Need]) -> None:
        self.inner.annotate(batches, needs | _WHOLE)

    def step(self, batches: Sequence[Batch], objective: Objective) -> Metrics:
        metrics = self.inner.step(batches, self._penalized(objective))
        largest, repairs = self._largest(batches), 0
        self._learn(largest)
        while largest > self.limit and repairs < self.sweeps:
            self.inner.step(batches, self._penalized(None))
            largest, repairs = self._largest(batches), repairs + 1
            self._learn(largest)
        return metrics | {
            "kl_largest": largest,
            "kl_weight": self._multiplier.value,
            "repairs": float(repairs),
            "is_bound_kept": float(largest <= self.limit),
        }

    def _learn(self, largest: float) -> None:
        self._multiplier.descend(self.limit - self.margin * largest, self.rate)

    def _penalized(self, objective: Objective | None) -> Objective:
        beta = self._multiplier.value

        def loss(output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
            penalty = beta * batch.token_mean(output.over_both(divergence, "proximal"))
            if objective is None:
                return penalty, {}
            total, metrics = objective(output, batch)
            return total + penalty, metrics

        return loss

    @torch.no_grad()
    def _largest(self, batches: Sequence[Batch]) -> float:
        """The largest KL of any state, from the distributions before the batch to the current ones."""
        again = [replace(batch) for batch in batches]
        self.inner.annotate(again, _WHOLE)
        pairs = [
            (batch, batch.frozen["proximal"], new.frozen["proximal"]) for batch, new in zip(batches, again, strict=True)
        ]
        return max((float(between(batch, old, new).max()) for batch, old, new in pairs if len(old.hidden)), default=0.0)

    def weights(self) -> dict[str, Tensor]:
        return self.inner.weights()

    def save(self, folder: Path) -> None:
        self.inner.save(folder)
        (folder / _FILE).write_text(json.dumps(vars(self._multiplier)) + "\n")

    def resume(self, folder: Path) -> None:
        self.inner.resume(folder)
        try:
            self._multiplier = Multiplier(**json.loads((folder / _FILE).read_text()))
        except (OSError, ValueError, TypeError) as error:
            raise CheckpointError(f"cannot read the penalty's weight in {folder}: {error}") from error


@dataclass
class Multiplier:
    """Number >= 0 optimized by Adam, starting at 1."""

    value: float = 1.0
    mean: float = 0.0
    square: float = 0.0
    steps: int = 0

    def descend(self, gradient: float, rate: float) -> None:
        self.steps += 1
        self.mean = _BETAS[0] * self.mean + (1 - _BETAS[0]) * gradient
        self.square = _BETAS[1] * self.square + (1 - _BETAS[1]) * gradient**2
        mean, square = self.mean / (1 - _BETAS[0] ** self.steps), self.square / (1 - _BETAS[1] ** self.steps)
        self.value = max(self.value - rate * mean / (square**0.5 + 1e-8), 0.0)


def divergence(new: Tensor, old: Tensor, tokens: Tensor) -> Tensor:
    """KL(old || new) of whole distributions: [C, V], [C, V] -> [C]."""
    before, after = old.log_softmax(-1), new.log_softmax(-1)
    return (before.exp() * (before - after)).sum(-1)


def between(batch: Batch, old: Frozen, new: Frozen, chunk: int = 1024) -> Tensor:
    """KL(old || new) at every completion token: [R]."""
    temperature = batch.temperature[batch.trainable].unsqueeze(1)
    found = []
    for low in range(0, len(old.hidden), chunk):
        rows = slice(low, low + chunk)
        before, after = (policy.head(policy.hidden[rows]).float() / temperature[rows] for policy in (old, new))
        found.append(divergence(after, before, temperature))
    return torch.cat(found)
