"""A learning rate that stays and then decays (stable-then-decay; OctoThinker, 2506.20512).

Papers: octothinker
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torch import Tensor

from strop.backends import Objective, Trainer
from strop.errors import CheckpointError, ConfigurationError
from strop.training.batch import Batch
from strop.training.requirements import Need, Note
from strop.training.trainers.torch import TorchTrainer
from strop.types import Group, Metrics

_FILE = "stable_then_decay.json"


@dataclass
class StableThenDecay(Trainer):
    """The rate for `stable` optimizer steps, then along half a cosine to `floor` of it over `decay` more, and no lower.

    The rate is that of `inner`. Both ends join: the first step of the decay is made with the whole rate.
    """

    inner: TorchTrainer
    decay: int  # optimizer steps
    stable: int = 0  # optimizer steps before
    floor: float = 0.1  # of the rate, in the end
    _num_steps: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.stable < 0 or self.decay < 1 or not 0 <= self.floor <= 1:
            raise ConfigurationError(
                f"StableThenDecay needs stable >= 0, decay >= 1 and 0 <= floor <= 1, got {self.stable}, {self.decay} "
                f"and {self.floor}"
            )

    def scale(self, num_steps: int) -> float:
        """Of the step after so many."""
        done = min(max(num_steps - self.stable, 0) / self.decay, 1.0)
        return self.floor + (1 - self.floor) * (1 + math.cos(math.pi * done)) / 2

    @property
    def max_tokens(self) -> int:
        return self.inner.max_tokens

    def open(self, model: Path, seed: int) -> None:
        self.inner.open(model, seed)
        self._num_steps = 0

    def note(self, groups: Sequence[Group], needs: frozenset[Note]) -> None:
        self.inner.note(groups, needs)

    def annotate(self, batches: Sequence[Batch], needs: frozenset[Need]) -> None:
        self.inner.annotate(batches, needs)

    def step(self, batches: Sequence[Batch], objective: Objective) -> Metrics:
        rate = self.inner.learning_rate
        self.inner.learning_rate = rate * self.scale(self._num_steps)
        try:
            metrics = self.inner.step(batches, objective)
        finally:
            self.inner.learning_rate = rate
        self._num_steps += 1
        return metrics

    def weights(self) -> dict[str, Tensor]:
        return self.inner.weights()

    def save(self, folder: Path) -> None:
        self.inner.save(folder)
        (folder / _FILE).write_text(json.dumps({"num_steps": self._num_steps}))

    def resume(self, folder: Path) -> None:
        self.inner.resume(folder)
        try:
            self._num_steps = int(json.loads((folder / _FILE).read_text())["num_steps"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"cannot read the schedule in {folder}: {error}") from error
