"""DigiRL's success classifier (2406.11896): the probability that a rollout succeeds, at the start of each turn.

A model of the states after tokens (`values/success.py`) is not trained at the end of a prompt.
Reading: one classifier for tasks and steps; the state before the first turn is the task alone.
Papers: digirl, vsc-rl, webrl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.success import success
from strop.training.arithmetic.calibration import calibration
from strop.training.arithmetic.turn_returns import turn_bounds
from strop.training.machine.value_body import BEFORE, Part
from strop.training.machine.value_model import Bodied
from strop.types import Group, Metrics, Rollout


@dataclass
class TurnSuccess(Bodied):
    """p = sigmoid(h) before each turn's first token, by binary cross-entropy to the rollout's reward, mean over turns.

    `values` are p of each token's turn.
    """

    steps: int = 2  # per batch

    needs_success: ClassVar[bool] = True
    _name: ClassVar[str] = "turn_success"

    def predict(self, groups: Sequence[Group]) -> None:
        for rollout, outputs in self._outputs(groups):
            rollout.values = np.zeros(0, dtype=np.float32)
            if len(outputs):
                probabilities = torch.from_numpy(outputs[_firsts([rollout]), BEFORE, 0]).sigmoid().numpy()
                counts = [len(turn.tokens) for turn in rollout.turns if len(turn.tokens)]
                rollout.values = np.repeat(probabilities, counts)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        rollouts = [rollout for group in groups for rollout in group.scored if rollout.num_tokens]
        predicted = [rollout.values[_firsts([rollout])] for rollout in rollouts if rollout.values is not None]
        metrics = calibration(np.concatenate([*predicted, np.zeros(0)]), _labels(rollouts))
        count, parts = max(len(_labels(rollouts)), 1), self._ready().parts(rollouts)
        return metrics | self._fit(lambda out, part: _loss(out, part) / count, parts, self.steps)


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
    """Success of each turn's rollout, from 0 to 1."""
    found = [np.full(len(turn_bounds(rollout)[0]), success(rollout)) for rollout in rollouts]
    return np.concatenate([*found, np.zeros(0)])
