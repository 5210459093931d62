"""A price on repetition, token by token (2502.03373): without it, wrong answers are padded for being long.

Reading: the second stream of credit is added to that of `inner`, which may have been whitened before; a critic foresees
the first one alone.
Papers: demystifying-long-cot
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.training.arithmetic.td_traces import traced
from strop.types import Group, IntArray, Metrics, Trajectory


@dataclass(frozen=True)
class RepetitionPaid(Advantage):
    """A_t of `inner` - penalty * (discounted count of tokens from t on that belong to a run seen before)."""

    inner: Advantage
    size: int = 40  # tokens of a run that must not come again in an attempt
    penalty: float = 0.05  # of each of its tokens
    discount: float = 0.99  # from token to token

    def __post_init__(self) -> None:
        if self.size < 1 or not 0 <= self.discount <= 1:
            raise ConfigurationError(
                f"RepetitionPaid needs size >= 1 and a discount from 0 to 1, got {self.size} and {self.discount}"
            )

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        for attempt in (attempt for group in groups for attempt in group.scored):
            if attempt.advantages is not None:
                attempt.advantages = (attempt.advantages + self._credit(attempt)).astype(np.float32)

    def _credit(self, attempt: Trajectory) -> NDArray[np.float64]:
        paid = -self.penalty * repeated_tokens(attempt, self.size).astype(np.float64)
        return traced(paid, np.zeros_like(paid), 0.0, self.discount, 1.0)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Says how much of the draw was said before; nothing is remembered."""
        found = [repeated_tokens(attempt, self.size) for group in groups for attempt in group.scored]
        tokens = np.concatenate([*found, np.zeros(0, dtype=np.bool_)])
        return {"repeated_share": float(tokens.mean())} if len(tokens) else {}


def repeated_tokens(attempt: Trajectory, size: int) -> NDArray[np.bool_]:
    """Written tokens of runs that the attempt wrote before, within a turn each: [N] bool."""
    seen: set[tuple[int, ...]] = set()
    return np.concatenate(
        [*(_repeated(turn.tokens, size, seen) for turn in attempt.turns), np.zeros(0, dtype=np.bool_)]
    )


def _repeated(tokens: IntArray, size: int, seen: set[tuple[int, ...]]) -> NDArray[np.bool_]:
    found = np.zeros(len(tokens), dtype=np.bool_)
    for start in range(len(tokens) - size + 1):
        own = tuple(tokens[start : start + size].tolist())
        if own in seen:
            found[start : start + size] = True
        seen.add(own)
    return found
