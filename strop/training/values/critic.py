"""PPO critic (Schulman et al., 1707.06347): a copy of the model with a linear head trained on the returns.

Papers: ppo
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch import Tensor

from strop.errors import ConfigurationError
from strop.training.arithmetic.calibration import calibration
from strop.training.machine.value_body import AFTER, BEFORE, Part
from strop.training.machine.value_model import Bodied
from strop.types import FloatArray, Group, Metrics, Rollout


@dataclass
class Critic(Bodied):
    """Critic with values from the hidden state before each completion token; they start at 0.

    To guide decoding it needs values of states *after* a candidate token, the end token included: with `learns_ends`
    the state after a rollout's last token is trained on its reward.
    """

    learns_ends: bool = False  # also train the state after the last token

    _name: ClassVar[str] = "critic"

    def predict(self, groups: Sequence[Group]) -> None:
        """Fill `values` of every scored rollout."""
        for rollout, outputs in self._outputs(groups):
            rollout.values = outputs[:, BEFORE, 0]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """One step on the mean squared error; returns the calibration before it."""
        body, predicted = self._ready(), list[Tensor]()
        parts = body.parts([rollout for group in groups for rollout in group.scored])
        ends = sum(len(part.rollouts) for part in parts) if self.learns_ends else 0
        count = sum(len(part.rows) for part in parts) + ends
        if not count:
            raise ConfigurationError("Critic needs at least 1 completion token to learn from, got 0")

        def loss(outputs: Tensor, part: Part) -> Tensor:
            values = outputs[:, BEFORE, 0]
            predicted.append(values.detach().cpu())
            total = (values - part.column([_returns(rollout) for rollout in part.rollouts])).square().sum()
            if ends:
                rewards = values.new_tensor([rollout.reward for rollout in part.rollouts])
                total = total + (outputs[part.last, AFTER, 0] - rewards).square().sum()
            return total / count

        norm = body.step(parts, loss, self.learning_rate)
        returns = np.concatenate([_returns(rollout) for part in parts for rollout in part.rollouts])
        values = np.concatenate([each.numpy() for each in predicted])
        return {**calibration(values, returns), "value_grad_norm": norm}


def _returns(rollout: Rollout) -> FloatArray:
    if rollout.returns is None or len(rollout.returns) != rollout.num_tokens:
        found = 0 if rollout.returns is None else len(rollout.returns)
        raise ConfigurationError(
            f"Critic needs one return per token: {rollout.num_tokens} tokens of {rollout.id}, got {found} returns"
        )
    return rollout.returns
