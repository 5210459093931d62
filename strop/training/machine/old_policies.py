"""Logprobs of earlier policies (old, averaged, proximal), and gradient norms of rollouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.models.model import parameters
from strop.training.batch import Batch, Output
from strop.training.machine.ema_policy import Average
from strop.training.machine.forward import Forward
from strop.training.machine.old_logprobs import Snapshots, fill_old
from strop.training.machine.score_norms import score_norms
from strop.training.requirements import Logprobs, Need, ScoreNorms
from strop.types import Metrics

FILLED = frozenset({Logprobs("old"), Logprobs("averaged"), ScoreNorms()})


@dataclass(eq=False)
class Earlier:
    """Fills a batch before its first optimizer step, when the model is still the version in question."""

    forward: Forward
    snapshots: Snapshots
    average: Average
    load: Callable[[], Any]  # another model of the same architecture
    _scratch: Any = None  # holds earlier weights while they score

    def fill(self, model: Any, batches: Sequence[Batch], needs: frozenset[Need]) -> None:
        """Old logprobs are filled whenever snapshots are kept, so that mismatch and staleness are always measured."""
        if not batches:
            return
        now = batches[0].version
        if self.snapshots.count:
            self.snapshots.keep(now, parameters(model))
            fill_old(batches, lambda version, batch: self._under(version, now, model, batch))
        elif Logprobs("old") in needs:
            raise ConfigurationError("old log-probabilities need the weights they were made with: set snapshots > 0")
        if Logprobs("averaged") in needs:
            self.average.add(now, parameters(model))
            mean = self._with(self.average.weights)
            for batch in batches:
                batch.fill("averaged", self.forward.logprobs(mean, batch))
        for batch in batches if ScoreNorms() in needs else ():
            batch.score_norms = score_norms(model, batch, self._logprob_sum)

    def observe(self, metrics: Metrics) -> None:
        """Learn from a step's metrics how useful the average still is."""
        if "alive_share" in metrics:
            self.average.observe(metrics["alive_share"])

    def save(self, folder: Path) -> None:
        self.snapshots.save(folder)
        if self.average.weights:
            self.average.save(folder)

    def resume(self, folder: Path) -> None:
        self.snapshots.resume(folder)
        if (folder / "averaged.json").is_file():
            self.average.resume(folder)

    def _under(self, version: int, now: int, model: Any, batch: Batch) -> Tensor:
        """Where a whole group is a teacher's there is no version (-1): the current one serves."""
        if version < 0 or version == now:
            return self.forward.logprobs(model, batch)
        return self.forward.logprobs(self._with(self.snapshots.of(version, now)), batch)

    def _with(self, weights: dict[str, Tensor]) -> Any:
        if self._scratch is None:
            self._scratch = self.load().requires_grad_(False)
        with torch.no_grad():
            for name, parameter in self._scratch.named_parameters():
                parameter.copy_(weights[name])
        return self._scratch

    def _logprob_sum(self, model: Any, batch: Batch) -> Tensor:
        def total(output: Output, _: Batch) -> tuple[Tensor, Metrics]:
            return output.logprobs.sum(), {}

        return self.forward.loss(model, batch, total)[0]
