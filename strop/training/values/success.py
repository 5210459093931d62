"""Q#'s value (2502.20548): how likely the reference is to succeed from here, learned by maximum likelihood.

Labels are rewards of attempts that the reference finished, so the policy must rest while this learns; decoding with it
is `generate/guided_decoding.py`.
Papers: q-sharp
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.training.arithmetic.calibration import calibration
from strop.training.machine.value_body import AFTER, BEFORE, Part, ValueBody
from strop.training.machine.value_model import Bodied
from strop.types import Group, Metrics


@dataclass
class Success(Bodied):
    """p = sigmoid(h) after every token, by binary cross-entropy to the attempt's reward, averaged within attempts.

    The state after the last token, the end of the reply, is among them: decoding asks about just that one before it
    stops. `values` are p before each token, which is what was expected of it.
    """

    learning_rate: float = 1e-4  # of Adam
    steps: int = 2  # per draw
    max_tokens: int = 4096  # of one micro-batch
    device: str = "cpu"

    _name: ClassVar[str] = "success"

    def open(self, model: Path, seed: int) -> None:
        self._body = ValueBody.open(model, 1, self.max_tokens, self.device)

    def predict(self, groups: Sequence[Group]) -> None:
        attempts = [attempt for group in groups for attempt in group.scored]
        told = self._ready().told(attempts)
        for attempt in attempts:
            logit = told.get(attempt.id, np.zeros((0, 2, 1), dtype=np.float32))[:, BEFORE, 0]
            attempt.values = torch.from_numpy(logit).sigmoid().numpy()

    def learn(self, groups: Sequence[Group]) -> Metrics:
        attempts = [attempt for group in groups for attempt in group.scored if attempt.num_tokens]
        if wrong := [attempt.reward for attempt in attempts if not 0 <= attempt.reward <= 1]:
            raise ConfigurationError(f"Success learns a probability and needs rewards from 0 to 1, got {wrong[0]:g}")
        values = np.concatenate([*(np.zeros(0) if a.values is None else a.values for a in attempts), np.zeros(0)])
        rewards = np.concatenate([*(np.full(a.num_tokens, a.reward) for a in attempts), np.zeros(0)])
        metrics = calibration(values, rewards) if len(values) == len(rewards) else {}
        body, count = self._ready(), max(len(attempts), 1)
        parts = body.parts(attempts)
        for _ in range(self.steps if parts else 0):
            metrics["value_grad_norm"] = body.step(
                parts, lambda out, part: _loss(out, part) / count, self.learning_rate
            )
        return metrics


def _loss(outputs: Tensor, part: Part) -> Tensor:
    """Mean over the states after each attempt's tokens, summed over attempts."""
    labels = part.column([np.full(attempt.num_tokens, attempt.reward) for attempt in part.attempts])
    weights = part.column([np.full(attempt.num_tokens, 1 / attempt.num_tokens) for attempt in part.attempts])
    return torch.nn.functional.binary_cross_entropy_with_logits(outputs[:, AFTER, 0], labels, weights, reduction="sum")
