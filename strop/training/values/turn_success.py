"""DigiRL's success classifier (2406.11896): the probability that a rollout succeeds, at the start of each turn.

A model of the states after tokens (`values/success.py`) is not trained at the end of a prompt.
Reading: one classifier for tasks and steps; the state before the first turn is the task alone.
Papers: digirl, vsc-rl, webrl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.errors import ConfigurationError
from strop.training.arithmetic.calibration import calibration
from strop.training.arithmetic.turn_returns import turn_bounds
from strop.training.machine.value_body import BEFORE, Part, ValueBody
from strop.training.machine.value_model import Bodied
from strop.types import Group, Metrics, Rollout


@dataclass
class TurnSuccess(Bodied):
    """p = sigmoid(h) before each turn's first token, by binary cross-entropy to the rollout's reward, mean over turns.

    `values` are p of each token's turn.
    """

    learning_rate: float = 1e-4  # of Adam
    steps: int = 2  # per batch
    max_tokens: int = 4096  # of one micro-batch
    device: str = "cpu"

    _name: ClassVar[str] = "turn_success"

    def open(self, model: Path, seed: int) -> None:
        self._body = ValueBody.open(model, 1, self.max_tokens, self.device)

    def predict(self, groups: Sequence[Group]) -> None:
        rollouts = [rollout for group in groups for rollout in group.scored]
        told = self._ready().told(rollouts)
        for rollout in rollouts:
            rollout.values = np.zeros(0, dtype=np.float32)
            if rollout.id in told:
                probabilities = torch.from_numpy(told[rollout.id][_firsts([rollout]), BEFORE, 0]).sigmoid().numpy()
                rollout.values = np.repeat(
                    probabilities, [len(turn.tokens) for turn in rollout.turns if len(turn.tokens)]
                )

    def learn(self, groups: Sequence[Group]) -> Metrics:
        rollouts = [rollout for group in groups for rollout in group.scored if rollout.num_tokens]
        if wrong := [rollout.reward for rollout in rollouts if not 0 <= rollout.reward <= 1]:
            raise ConfigurationError(
                f"TurnSuccess learns a probability and needs rewards from 0 to 1, got {wrong[0]:g}"
            )
        predicted = [rollout.values[_firsts([rollout])] for rollout in rollouts if rollout.values is not None]
        metrics = calibration(np.concatenate([*predicted, np.zeros(0)]), _labels(rollouts))
        body, count = self._ready(), max(len(_labels(rollouts)), 1)
        parts = body.parts(rollouts)
        for _ in range(self.steps if parts else 0):
            metrics["value_grad_norm"] = body.step(
                parts, lambda out, part: _loss(out, part) / count, self.learning_rate
            )
        return metrics


def _loss(outputs: Tensor, part: Part) -> Tensor:
    """Loss summed over the turns of a part."""
    logits = outputs[_firsts(part.rollouts), BEFORE, 0]
    labels = torch.from_numpy(_labels(part.rollouts)).to(logits)
    return torch.nn.functional.binary_cross_entropy_with_logits(logits, labels, reduction="sum")


def _firsts(rollouts: Sequence[Rollout]) -> list[int]:
    """Indices of the completion tokens of all these rollouts at which a turn begins."""
    starts = np.cumsum([0, *(rollout.num_tokens for rollout in rollouts)]).tolist()
    return [start + first for start, each in zip(starts, rollouts, strict=False) for first in turn_bounds(each)[0]]


def _labels(rollouts: Sequence[Rollout]) -> NDArray[np.float64]:
    """Final reward of each turn's rollout."""
    found = [np.full(len(turn_bounds(rollout)[0]), rollout.reward) for rollout in rollouts]
    return np.concatenate([*found, np.zeros(0)])
