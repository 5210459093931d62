"""REINFORCE++ as published (Hu, 2501.03262): the KL to the reference is paid token by token, inside the return.

Papers: reinforce-plus-plus
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.train.arithmetic.turn_credit import token_payments
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
    def needs(self) -> frozenset[str]:
        return frozenset({"logprobs", "reference_logprobs"} if self.kl else ())

    def __call__(self, groups: Sequence[Group]) -> None:
        attempts = [attempt for group in groups for attempt in group.scored]
        returns = [self._returns(attempt) for attempt in attempts]
        tokens = np.concatenate([*returns, np.zeros(0)])
        origin = tokens[:1].copy()  # equal returns give exactly 0
        centre, spread = ((tokens - origin).mean(), (tokens - origin).std()) if len(tokens) else (0.0, 0.0)
        for attempt, own in zip(attempts, returns, strict=True):
            attempt.returns = own.astype(np.float32)
            attempt.advantages = ((own - origin - centre) / (spread + self.epsilon)).astype(np.float32)

    def _returns(self, attempt: Trajectory) -> NDArray[np.float64]:
        """[N]."""
        paid = np.zeros(attempt.num_tokens)
        if self.kl and attempt.num_tokens:
            if missing := self.needs - set(attempt.notes):
                raise ConfigurationError(f"attempt {attempt.id} has no notes of {', '.join(sorted(missing))}")
            policy, reference = (attempt.notes[name].astype(np.float64) for name in ("logprobs", "reference_logprobs"))
            paid -= self.kl * np.nan_to_num(policy - reference).clip(-20, 20)
        paid += token_payments(attempt)
        for t in reversed(range(len(paid) - 1)):
            paid[t] += self.discount * paid[t + 1]
        return paid
