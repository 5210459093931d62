"""SPA-RL's credit (2505.20732): every turn is paid its contribution and its grounding, and credited what follows.

Reading: the two terms are added with weight 1, as released. Instead of a second critic, returns are standardised over
the tokens of the draw.
Papers: spa-rl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class ProgressReturns(Advantage):
    """r_k = contribution (the values of turn k, summed) + what the agent paid for the turn; A = standardised return.

    The return of turn k is the discounted sum of r from k on; mean and population std are over all written tokens.
    """

    discount: float = 1.0  # from turn to turn
    epsilon: float = 1e-8

    needs_values: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        attempts = [attempt for group in groups for attempt in group.scored]
        returns = [self._returns(attempt) for attempt in attempts]
        tokens = np.concatenate([*returns, np.zeros(0)])
        origin = tokens[:1].copy()
        centre, spread = ((tokens - origin).mean(), (tokens - origin).std()) if len(tokens) else (0.0, 0.0)
        for attempt, own in zip(attempts, returns, strict=True):
            attempt.advantages = ((own - origin - centre) / (spread + self.epsilon)).astype(np.float32)

    def _returns(self, attempt: Trajectory) -> NDArray[np.float64]:
        """[N]."""
        lengths = [len(turn.tokens) for turn in attempt.turns]
        following = np.zeros(len(lengths))
        total = 0.0
        for turn in reversed(range(len(lengths))):
            total = turn_rewards(attempt)[turn] + self.discount * total
            following[turn] = total
        return np.repeat(following, lengths)


def turn_rewards(attempt: Trajectory) -> list[float]:
    """What each turn is paid."""
    lengths = [len(turn.tokens) for turn in attempt.turns]
    if attempt.values is None or len(attempt.values) != sum(lengths):
        found = 0 if attempt.values is None else len(attempt.values)
        raise ConfigurationError(f"ProgressReturns needs contributions for {sum(lengths)} tokens, got {found}")
    parts = np.split(attempt.values.astype(np.float64), np.cumsum(lengths)[:-1]) if lengths else []
    paid = attempt.turn_rewards if len(attempt.turn_rewards) == len(lengths) else (0.0,) * len(lengths)
    return [float(part.sum()) + bonus for part, bonus in zip(parts, paid, strict=True)]
