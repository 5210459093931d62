"""DigiRL's classifier (2406.11896): how likely an attempt is to succeed, learned where credit by turns asks.

A model of the states after tokens (`values/success.py`) has never been told what to say at the end of a prompt.
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
from strop.types import Group, Metrics, Trajectory


@dataclass
class TurnSuccess(Bodied):
    """p = sigmoid(h) before each turn's first token, by binary cross-entropy to the attempt's reward, mean over turns.

    `values` are p of each token's turn.
    """

    learning_rate: float = 1e-4  # of Adam
    steps: int = 2  # per draw
    max_tokens: int = 4096  # of one micro-batch
    device: str = "cpu"

    _name: ClassVar[str] = "turn_success"

    def open(self, model: Path, seed: int) -> None:
        self._body = ValueBody.open(model, 1, self.max_tokens, self.device)

    def predict(self, groups: Sequence[Group]) -> None:
        attempts = [attempt for group in groups for attempt in group.scored]
        told = self._ready().told(attempts)
        for attempt in attempts:
            attempt.values = np.zeros(0, dtype=np.float32)
            if attempt.id in told:
                chances = torch.from_numpy(told[attempt.id][_firsts([attempt]), BEFORE, 0]).sigmoid().numpy()
                attempt.values = np.repeat(chances, [len(turn.tokens) for turn in attempt.turns if len(turn.tokens)])

    def learn(self, groups: Sequence[Group]) -> Metrics:
        attempts = [attempt for group in groups for attempt in group.scored if attempt.num_tokens]
        if wrong := [attempt.reward for attempt in attempts if not 0 <= attempt.reward <= 1]:
            raise ConfigurationError(
                f"TurnSuccess learns a probability and needs rewards from 0 to 1, got {wrong[0]:g}"
            )
        foreseen = [attempt.values[_firsts([attempt])] for attempt in attempts if attempt.values is not None]
        metrics = calibration(np.concatenate([*foreseen, np.zeros(0)]), _labels(attempts))
        body, count = self._ready(), max(len(_labels(attempts)), 1)
        parts = body.parts(attempts)
        for _ in range(self.steps if parts else 0):
            metrics["value_grad_norm"] = body.step(
                parts, lambda out, part: _loss(out, part) / count, self.learning_rate
            )
        return metrics


def _loss(outputs: Tensor, part: Part) -> Tensor:
    """Summed over the turns of a part."""
    logits = outputs[_firsts(part.attempts), BEFORE, 0]
    labels = torch.from_numpy(_labels(part.attempts)).to(logits)
    return torch.nn.functional.binary_cross_entropy_with_logits(logits, labels, reduction="sum")


def _firsts(attempts: Sequence[Trajectory]) -> list[int]:
    """Which of the written tokens of all these attempts begin a turn."""
    starts = np.cumsum([0, *(attempt.num_tokens for attempt in attempts)]).tolist()
    return [start + first for start, each in zip(starts, attempts, strict=False) for first in turn_bounds(each)[0]]


def _labels(attempts: Sequence[Trajectory]) -> NDArray[np.float64]:
    """What each turn's attempt was paid in the end."""
    found = [np.full(len(turn_bounds(attempt)[0]), attempt.reward) for attempt in attempts]
    return np.concatenate([*found, np.zeros(0)])
