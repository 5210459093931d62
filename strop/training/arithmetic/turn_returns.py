"""Credit by turn: what followed a turn, and how a number per turn becomes one per token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from strop.types import Trajectory

_PAID, _ENDS = "paid/", "span/ends"  # see `filter/span_rewards.py`


def turn_payments(attempt: Trajectory) -> list[float]:
    """What each turn was paid; what rewards say beyond the world's pay stands at the end: the sum is the reward."""
    count = len(attempt.turns)
    paid = list(attempt.turn_rewards) if len(attempt.turn_rewards) == count else [0.0] * count
    if paid:
        paid[-1] += attempt.reward - sum(paid)
    return paid


def placed_payments(attempt: Trajectory) -> NDArray[np.float64]:
    """What each written token was paid by rewards that named its place: [N]."""
    paid = np.zeros(attempt.num_tokens)
    places = [0, *np.cumsum([len(turn.tokens) for turn in attempt.turns]).tolist()]
    for turn, low, high in zip(attempt.turns, places, places[1:], strict=False):
        for name, rows in turn.aux.items():
            if name.startswith(_PAID) and high > low:
                paid[low:high] += rows[len(turn.prompt) :]
    return paid


def token_payments(attempt: Trajectory) -> NDArray[np.float64]:
    """What each written token was paid: places that rewards named, all else on the last one; the sum is the reward."""
    paid = placed_payments(attempt)
    paid[-1:] += attempt.reward - paid.sum()
    return paid


def ends_of(attempt: Trajectory) -> list[int]:
    """The written tokens at which a sentence ends, as rewards marked them."""
    marked = [
        turn.aux[_ENDS][len(turn.prompt) :] if _ENDS in turn.aux else np.zeros(len(turn.tokens))
        for turn in attempt.turns
    ]
    return np.flatnonzero(np.concatenate(marked)).tolist() if marked else []


def on_written(attempt: Trajectory, paid: Sequence[float]) -> list[float]:
    """A payment per turn as one per turn that wrote something: a silent one's goes to the one before, or to the first.

    [turns] -> [U].
    """
    found, early = list[float](), 0.0
    for each, turn in zip(paid, attempt.turns, strict=True):
        if len(turn.tokens):
            found.append(each + (0.0 if found else early))
        elif found:
            found[-1] += each
        else:
            early += each
    return found


def turn_bounds(attempt: Trajectory) -> tuple[list[int], list[int]]:
    """First and last written token of each turn that has any: [U], [U]."""
    lengths = [len(turn.tokens) for turn in attempt.turns if len(turn.tokens)]
    ends = np.cumsum(lengths, dtype=np.int64)
    return (ends - lengths).tolist(), (ends - 1).tolist()


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
