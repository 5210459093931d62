"""REINFORCE++ as published (Hu, 2501.03262): the KL to the reference is a reward per token, within the return.

Papers: reinforce-plus-plus
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strop.roles import Advantage
from strop.training.arithmetic.td_traces import KL_STATISTICS, kl_payments, traced, whitened
from strop.training.arithmetic.turn_returns import token_payments
from strop.training.requirements import PolicyStatistic
from strop.types import Group, Rollout


@dataclass(frozen=True)
class TokenReturns(Advantage):
    """return_t = sum of discounted rewards from t on, r_t = -kl * log(policy / reference) and the reward at the end.

    A = (return - mean) / (std + epsilon) over all completion tokens of the batch, population std. Environment tokens
    are skipped.
    """

    kl: float = 0.01  # coefficient of log(policy / reference)
    discount: float = 1.0  # from token to token
    epsilon: float = 1e-8

    @property
    def needs(self) -> frozenset[PolicyStatistic]:
        return KL_STATISTICS if self.kl else frozenset()

    def __call__(self, groups: Sequence[Group]) -> None:
        rollouts = [rollout for group in groups for rollout in group.scored]
        returns = [self._returns(rollout) for rollout in rollouts]
        for rollout, own, advantage in zip(rollouts, returns, whitened(returns, self.epsilon), strict=True):
            rollout.returns, rollout.advantages = own.astype(np.float32), advantage.astype(np.float32)

    def _returns(self, rollout: Rollout) -> NDArray[np.float64]:
        """Return of each token: [N]."""
        paid = kl_payments(rollout, self.kl) + token_payments(rollout)
        return traced(paid, np.zeros_like(paid), 0.0, self.discount, 1.0)
