"""A global value model (DVPO, 2502.16944): learned beforehand, frozen while the policy learns from it.

Reading: the value model reads task and answer, as in the release; the paper also shows it trajectories of the policy.
Papers: dvpo
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from strop.errors import ConfigurationError
from strop.roles import ValueModel
from strop.training.arithmetic.calibration import calibration
from strop.training.machine.value_body import BEFORE, ValueBody
from strop.types import FilePath, Group, Metrics


@dataclass
class FrozenCritic(ValueModel):
    """Values of a critic that a run saved (`checkpoints/step-N/values`); it sees new rewards only to be judged."""

    folder: FilePath  # checkpoints/step-N/values of another run
    max_tokens: int = 4096  # of one pass
    device: str = "cpu"

    _body: ValueBody | None = field(default=None, init=False, repr=False, compare=False)

    def open(self, model: Path, seed: int) -> None:
        self._body = ValueBody.open(model, 1, self.max_tokens, self.device)
        self._body.model.load(Path(self.folder) / "critic_weights.safetensors")

    def predict(self, groups: Sequence[Group]) -> None:
        if self._body is None:
            raise ConfigurationError("FrozenCritic has no model yet: call open(model, seed) first")
        attempts = [attempt for group in groups for attempt in group.scored]
        told = self._body.told(attempts)
        for attempt in attempts:
            attempt.values = told[attempt.id][:, BEFORE, 0] if attempt.id in told else np.zeros(0, dtype=np.float32)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing is learned; how well the rewards were foreseen is still said."""
        attempts = [attempt for group in groups for attempt in group.scored if attempt.num_tokens]
        values = [attempt.values for attempt in attempts if attempt.values is not None]
        rewards = [np.full(len(own), attempt.reward) for own, attempt in zip(values, attempts, strict=True)]
        return calibration(np.concatenate([*values, np.zeros(0)]), np.concatenate([*rewards, np.zeros(0)]))
