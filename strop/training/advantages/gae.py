"""Generalized advantage estimation (Schulman et al., 1506.02438): credit per token, from a critic's values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.training.arithmetic.turn_returns import token_payments
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class Gae(Advantage):
    """delta_t = r_t + discount * V_(t+1) - V_t;  A_t = delta_t + discount * trace * A_(t+1);  return_t = A_t + V_t.

    The attempt's reward stands on its last token, but for places that a reward named. What the world paid per turn is
    part of it where a reward says so, and is not added again. V after the last token is 0, also where the attempt was
    cut. Tokens the policy did not write are stepped over: the next state is the next written token. Whitening
    standardises the advantages (not the returns) over all tokens of the draw, with the population std.
    """

    discount: float = 1.0  # from token to token
    trace: float = 0.95  # lambda: 1 trusts rewards alone, 0 the critic alone
    whiten: bool = True  # over the tokens of the draw

    needs_values: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        attempts = [attempt for group in groups for attempt in group.scored]
        advantages = self._advantages(attempts)
        for attempt, advantage in zip(attempts, advantages, strict=True):
            attempt.returns = (advantage + _values(attempt)).astype(np.float32)
        centre, spread = _moments(advantages) if self.whiten else (0.0, 1.0)
        for attempt, advantage in zip(attempts, advantages, strict=True):
            attempt.advantages = ((advantage - centre) / spread).astype(np.float32)

    def _advantages(self, attempts: Sequence[Trajectory]) -> list[NDArray[np.float64]]:
        longest = max((attempt.num_tokens for attempt in attempts), default=0)
        table = np.zeros((len(attempts), longest + 1))  # one row per attempt, zeros after its end
        for row, attempt in zip(table, attempts, strict=True):
            row[: attempt.num_tokens] = self._deltas(attempt)
        for t in reversed(range(longest)):
            table[:, t] += self.discount * self.trace * table[:, t + 1]
        return [row[: attempt.num_tokens] for row, attempt in zip(table, attempts, strict=True)]

    def _deltas(self, attempt: Trajectory) -> NDArray[np.float64]:
        values = _values(attempt)  # [N]
        deltas = self.discount * np.append(values[1:], 0.0)[: len(values)] - values
        return np.asarray(deltas + token_payments(attempt))


def _values(attempt: Trajectory) -> NDArray[np.float64]:
    found = "none" if attempt.values is None else str(len(attempt.values))
    if attempt.values is None or len(attempt.values) != attempt.num_tokens:
        raise ConfigurationError(
            f"Gae needs a value for each of {attempt.num_tokens} tokens, got {found}: add a critic"
        )
    return attempt.values.astype(np.float64)


def _moments(advantages: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    """Mean over all tokens, and the population std, never 0."""
    tokens = np.concatenate([*advantages, np.zeros(0)])
    return (float(tokens.mean()), float(tokens.std()) + 1e-8) if len(tokens) else (0.0, 1.0)
