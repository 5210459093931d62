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
from strop.training.arithmetic.td_traces import KL_NOTES, kl_payments, traced, whitened
from strop.training.requirements import Note
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class ValueGuided(Advantage):
    """Generalized advantages of the values alone, V after the end as at the end; whitened over the draw's tokens.

    With trace and discount 1, and no KL: A_t = V_end - V_t.
    """

    discount: float = 1.0  # from token to token
    trace: float = 0.95  # lambda: 1 looks to the end, 0 one token ahead
    kl: float = 0.0  # weight of log(policy / reference), which each token pays
    whiten_values: bool = False  # over the tokens of the draw, before anything else

    needs_values: ClassVar[bool] = True

    @property
    def needs(self) -> frozenset[Note]:
        return KL_NOTES if self.kl else frozenset()

    def __call__(self, groups: Sequence[Group]) -> None:
        attempts = [attempt for group in groups for attempt in group.scored]
        values = [_values(attempt) for attempt in attempts]
        if self.whiten_values:
            values = whitened(values)
        found = [self._credit(attempt, own) for attempt, own in zip(attempts, values, strict=True)]
        for attempt, own in zip(attempts, whitened(found), strict=True):
            attempt.advantages = own.astype(np.float32)

    def _credit(self, attempt: Trajectory, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Before it is whitened: [N]."""
        end = float(values[-1]) if len(values) else 0.0
        return traced(kl_payments(attempt, self.kl), values, end, self.discount, self.trace)


def _values(attempt: Trajectory) -> NDArray[np.float64]:
    if attempt.values is None or len(attempt.values) != attempt.num_tokens:
        number = 0 if attempt.values is None else len(attempt.values)
        raise ConfigurationError(f"ValueGuided needs a value for each of {attempt.num_tokens} tokens, got {number}")
    return attempt.values.astype(np.float64)
