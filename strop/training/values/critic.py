"""A critic as in PPO (Schulman et al., 1707.06347): a copy of the model with a linear head that learns the returns.

Papers: ppo
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from torch import Tensor

from strop.errors import ConfigurationError
from strop.training.arithmetic.calibration import calibration
from strop.training.machine.value_body import AFTER, BEFORE, Part, ValueBody
from strop.training.machine.value_model import Bodied
from strop.types import FloatArray, Group, Metrics, Trajectory


@dataclass
class Critic(Bodied):
    """The value of a state is read off the hidden state before each written token; it starts at 0 everywhere.

    One that shall guide decoding is asked about states *after* a candidate, the end token among them: with
    `learns_ends` the state after an attempt's last token learns its reward.
    """

    learning_rate: float = 1e-4  # of Adam
    learns_ends: bool = False  # also the state after the last token
    max_tokens: int = 4096  # of one micro-batch
    device: str = "cpu"  # cpu or cuda

    _name: ClassVar[str] = "critic"

    def open(self, model: Path, seed: int) -> None:
        self._body = ValueBody.open(model, 1, self.max_tokens, self.device)

    def predict(self, groups: Sequence[Group]) -> None:
        """Fill `values` of every attempt that counts."""
        attempts = [attempt for group in groups for attempt in group.scored]
        told = self._ready().told(attempts)
        for attempt in attempts:
            attempt.values = told[attempt.id][:, BEFORE, 0] if attempt.id in told else np.zeros(0, dtype=np.float32)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """One step on the mean squared error; always says how well the returns were foreseen before it."""
        body, foreseen = self._ready(), list[Tensor]()
        parts = body.parts([attempt for group in groups for attempt in group.scored])
        ends = sum(len(part.attempts) for part in parts) if self.learns_ends else 0
        count = sum(len(part.rows) for part in parts) + ends
        if not count:
            raise ConfigurationError("Critic needs at least 1 written token to learn from, got 0")

        def loss(outputs: Tensor, part: Part) -> Tensor:
            values = outputs[:, BEFORE, 0]
            foreseen.append(values.detach().cpu())
            total = (values - part.column([_returns(attempt) for attempt in part.attempts])).square().sum()
            if ends:
                rewards = values.new_tensor([attempt.reward for attempt in part.attempts])
                total = total + (outputs[part.last, AFTER, 0] - rewards).square().sum()
            return total / count

        norm = body.step(parts, loss, self.learning_rate)
        returns = np.concatenate([_returns(attempt) for part in parts for attempt in part.attempts])
        values = np.concatenate([each.numpy() for each in foreseen])
        return {**calibration(values, returns), "value_grad_norm": norm}


def _returns(attempt: Trajectory) -> FloatArray:
    if attempt.returns is None or len(attempt.returns) != attempt.num_tokens:
        found = 0 if attempt.returns is None else len(attempt.returns)
        raise ConfigurationError(f"Critic learns from {attempt.num_tokens} tokens of {attempt.id}, got {found} returns")
    return attempt.returns
