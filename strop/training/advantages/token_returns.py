"""REINFORCE++ as published (Hu, 2501.03262): the KL to the reference is paid token by token, inside the return.

Papers: reinforce-plus-plus
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strop.roles import Advantage
from strop.training.arithmetic.td_traces import KL_NOTES, kl_payments, traced, whitened
from strop.training.arithmetic.turn_returns import token_payments
from strop.training.requirements import Note
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class TokenReturns(Advantage):
    """return_t = sum of discounted rewards from t on, r_t = -kl * log(policy / reference) and the reward at the end.

    A = (return - mean) / (std + epsilon) over all written tokens of the draw, population std. What the world said in
    between is stepped over.
    """

    kl: float = 0.01  # price of log(policy / reference)
    discount: float = 1.0  # from token to token
    epsilon: float = 1e-8

    @property
    def needs(self) -> frozenset[Note]:
        return KL_NOTES if self.kl else frozenset()

    def __call__(self, groups: Sequence[Group]) -> None:
        attempts = [attempt for group in groups for attempt in group.scored]
        returns = [self._returns(attempt) for attempt in attempts]
        for attempt, own, credit in zip(attempts, returns, whitened(returns, self.epsilon), strict=True):
            attempt.returns, attempt.advantages = own.astype(np.float32), credit.astype(np.float32)

    def _returns(self, attempt: Trajectory) -> NDArray[np.float64]:
        """[N]."""
        paid = kl_payments(attempt, self.kl) + token_payments(attempt)
        return traced(paid, np.zeros_like(paid), 0.0, self.discount, 1.0)
