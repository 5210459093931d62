"""DVPO's credit (2502.16944): what a frozen value model says, and no reward at all.

Reading: the state after the last token is given the last value, so that credit telescopes; taken literally the release
puts 0 there, and every advantage is minus the value.
Papers: dvpo
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
class ValueGuided(Advantage):
    """delta_t = discount * V_(t+1) - V_t, V after the end as at the end; A_t = delta_t + discount * trace * A_(t+1).

    With trace and discount 1: A_t = V_end - V_t. Whitened over the tokens of the draw, population std.
    """

    discount: float = 1.0  # from token to token
    trace: float = 0.95  # lambda: 1 looks to the end, 0 one token ahead
    whiten: bool = True  # over the tokens of the draw

    needs_values: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        attempts = [attempt for group in groups for attempt in group.scored]
        found = [self._advantages(attempt) for attempt in attempts]
        tokens = np.concatenate([*found, np.zeros(0)])
        is_whitened = self.whiten and len(tokens) > 0 and float(np.ptp(tokens)) > 0
        centre, spread = (tokens.mean(), tokens.std()) if is_whitened else (0.0, 1.0)
        for attempt, own in zip(attempts, found, strict=True):
            attempt.advantages = ((own - centre) / (spread or 1.0)).astype(np.float32)

    def _advantages(self, attempt: Trajectory) -> NDArray[np.float64]:
        if attempt.values is None or len(attempt.values) != attempt.num_tokens:
            number = 0 if attempt.values is None else len(attempt.values)
            raise ConfigurationError(f"ValueGuided needs a value for each of {attempt.num_tokens} tokens, got {number}")
        values = attempt.values.astype(np.float64)
        credit: NDArray[np.float64] = self.discount * np.append(values[1:], values[-1:]) - values
        for t in reversed(range(len(credit) - 1)):
            credit[t] += self.discount * self.trace * credit[t + 1]
        return credit
