"""Credit by turn: what followed a turn, and how a number per turn becomes one per token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from strop.types import Trajectory


def turn_payments(attempt: Trajectory) -> list[float]:
    """What each turn was paid; what rewards say beyond the world's pay stands at the end: the sum is the reward."""
    count = len(attempt.turns)
    paid = list(attempt.turn_rewards) if len(attempt.turn_rewards) == count else [0.0] * count
    if paid:
        paid[-1] += attempt.reward - sum(paid)
    return paid


def turn_returns(attempt: Trajectory, discount: float) -> list[float]:
    """What was paid from each turn on."""
    total, returns = 0.0, []
    for reward in reversed(turn_payments(attempt)):
        total = reward + discount * total
        returns.append(total)
    return returns[::-1]


def credit_turns(attempt: Trajectory, credits: Sequence[float]) -> None:
    """Give every token of a turn the turn's credit."""
    lengths = [len(turn.tokens) for turn in attempt.turns]
    attempt.advantages = np.repeat(np.array(credits, dtype=np.float32), lengths)


def role_of(attempt: Trajectory, turn: int) -> int:
    """The number of the role in which a turn was written: what its agent left as the fact `role/TURN`, else 0."""
    return int(attempt.facts.get(f"role/{turn}", 0))
