"""SPA-RL's credit (2505.20732): turns are paid their contribution and their grounding, tokens pay the KL; then GAE.

Reading: the two terms are added with weight 1, as released, and stand on a turn's last token. The outcome itself is not
paid again: contributions add up to what it is expected to be.
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
from strop.training.arithmetic.td_traces import KL_NOTES, kl_payments, traced, whitened
from strop.training.arithmetic.turn_returns import on_written, turn_bounds
from strop.training.requirements import Note
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class ProgressReturns(Advantage):
    """r_t = contribution + what the agent paid at the last token of a turn, - kl * log(policy / reference) everywhere.

    delta_t = r_t + discount * V_(t+1) - V_t and A_t = delta_t + discount * trace * A_(t+1), nothing after the end;
    return_t = A_t + V_t for the critic. A is whitened over the tokens of the draw.
    """

    discount: float = 1.0  # from token to token
    trace: float = 0.95  # lambda: 1 looks to the end, 0 one token ahead
    kl: float = 0.0  # weight of log(policy / reference), which each token pays

    needs_values: ClassVar[bool] = True

    @property
    def needs(self) -> frozenset[Note]:
        return KL_NOTES if self.kl else frozenset()

    def __call__(self, groups: Sequence[Group]) -> None:
        attempts = [attempt for group in groups for attempt in group.scored]
        values = [_values(attempt) for attempt in attempts]
        paid = [kl_payments(attempt, self.kl) + turns_paid(attempt) for attempt in attempts]
        credit = [traced(r, v, 0.0, self.discount, self.trace) for r, v in zip(paid, values, strict=True)]
        for attempt, own, value, white in zip(attempts, credit, values, whitened(credit, 1e-8), strict=True):
            attempt.returns, attempt.advantages = (own + value).astype(np.float32), white.astype(np.float32)


def turns_paid(attempt: Trajectory) -> NDArray[np.float64]:
    """Contribution and grounding at the last token of each turn, 0 elsewhere: [N]."""
    _, ends = turn_bounds(attempt)
    contributions = attempt.notes.get("contributions", np.zeros(0))
    if len(contributions) != len(ends):
        raise ConfigurationError(
            f"ProgressReturns needs contributions of {len(ends)} turns of attempt {attempt.id}, got "
            f"{len(contributions)}: set values=Contributions(Critic())"
        )
    has_pay = len(attempt.turn_rewards) == len(attempt.turns)
    paid = np.zeros(attempt.num_tokens)
    paid[ends] = contributions + (on_written(attempt, attempt.turn_rewards) if has_pay else 0.0)
    return paid


def _values(attempt: Trajectory) -> NDArray[np.float64]:
    if attempt.values is None or len(attempt.values) != attempt.num_tokens:
        number = 0 if attempt.values is None else len(attempt.values)
        raise ConfigurationError(
            f"ProgressReturns needs a value for each of {attempt.num_tokens} tokens, got {number}: add a critic"
        )
    return attempt.values.astype(np.float64)
