"""Generalized advantage estimation (Schulman et al., 1506.02438): advantage per token, from a critic's values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.training.arithmetic.turn_returns import token_payments
from strop.types import Group, Rollout


@dataclass(frozen=True)
class Gae(Advantage):
    """delta_t = r_t + discount * V_(t+1) - V_t;  A_t = delta_t + discount * trace * A_(t+1);  return_t = A_t + V_t.

    The rollout's reward is on its last token, except for parts that a reward placed elsewhere. The environment's
    rewards per turn are included where a reward reports them, and are not added again. V after the last token is 0,
    also for truncated rollouts. Tokens that the policy did not sample are skipped: the next state is the next
    completion token. Whitening standardises the advantages (not the returns) over all tokens of the batch, with the
    population std.
    """

    discount: float = 1.0  # from token to token
    trace: float = 0.95  # lambda: 1 uses rewards alone, 0 the critic alone
    whiten: bool = True  # over the tokens of the batch

    needs_values: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        rollouts = [rollout for group in groups for rollout in group.scored]
        advantages = self._advantages(rollouts)
        for rollout, advantage in zip(rollouts, advantages, strict=True):
            rollout.returns = (advantage + _values(rollout)).astype(np.float32)
        centre, spread = _moments(advantages) if self.whiten else (0.0, 1.0)
        for rollout, advantage in zip(rollouts, advantages, strict=True):
            rollout.advantages = ((advantage - centre) / spread).astype(np.float32)

    def _advantages(self, rollouts: Sequence[Rollout]) -> list[NDArray[np.float64]]:
        longest = max((rollout.num_tokens for rollout in rollouts), default=0)
        table = np.zeros((len(rollouts), longest + 1))  # one row per rollout, zeros after its end
        for row, rollout in zip(table, rollouts, strict=True):
            row[: rollout.num_tokens] = self._deltas(rollout)
        for t in reversed(range(longest)):
            table[:, t] += self.discount * self.trace * table[:, t + 1]
        return [row[: rollout.num_tokens] for row, rollout in zip(table, rollouts, strict=True)]

    def _deltas(self, rollout: Rollout) -> NDArray[np.float64]:
        values = _values(rollout)  # [N]
        deltas = self.discount * np.append(values[1:], 0.0)[: len(values)] - values
        return np.asarray(deltas + token_payments(rollout))


def _values(rollout: Rollout) -> NDArray[np.float64]:
    found = "none" if rollout.values is None else str(len(rollout.values))
    if rollout.values is None or len(rollout.values) != rollout.num_tokens:
        raise ConfigurationError(
            f"Gae needs one value per token: {rollout.num_tokens} tokens, got {found} values; add a critic"
        )
    return rollout.values.astype(np.float64)


def _moments(advantages: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    """Mean over all tokens, and the population std, never 0."""
    tokens = np.concatenate([*advantages, np.zeros(0)])
    return (float(tokens.mean()), float(tokens.std()) + 1e-8) if len(tokens) else (0.0, 1.0)
