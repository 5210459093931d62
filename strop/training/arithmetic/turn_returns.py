"""Advantage by turn: what followed a turn, and how a number per turn becomes one per token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from strop.types import Rollout

_PAID, _ENDS = "paid/", "span/ends"  # see `filter/span_rewards.py`


def turn_payments(rollout: Rollout) -> list[float]:
    """What each turn was paid; what rewards say beyond the environment's pay stands at the end: the sum is the
    reward.
    """
    count = len(rollout.turns)
    paid = list(rollout.turn_rewards) if len(rollout.turn_rewards) == count else [0.0] * count
    if paid:
        paid[-1] += rollout.reward - sum(paid)
    return paid


def placed_payments(rollout: Rollout) -> NDArray[np.float64]:
    """What each written token was paid by rewards that named its place: [N]."""
    paid = np.zeros(rollout.num_tokens)
    places = [0, *np.cumsum([len(turn.tokens) for turn in rollout.turns]).tolist()]
    for turn, low, high in zip(rollout.turns, places, places[1:], strict=False):
        for name, rows in turn.aux.items():
            if name.startswith(_PAID) and high > low:
                paid[low:high] += rows[len(turn.prompt) :]
    return paid


def token_payments(rollout: Rollout) -> NDArray[np.float64]:
    """What each written token was paid: places that rewards named, all else on the last one; the sum is the reward."""
    paid = placed_payments(rollout)
    paid[-1:] += rollout.reward - paid.sum()
    return paid


def ends_of(rollout: Rollout) -> list[int]:
    """The written tokens at which a sentence ends, as rewards marked them."""
    marked = [
        turn.aux[_ENDS][len(turn.prompt) :] if _ENDS in turn.aux else np.zeros(len(turn.tokens))
        for turn in rollout.turns
    ]
    return np.flatnonzero(np.concatenate(marked)).tolist() if marked else []


def on_written(rollout: Rollout, paid: Sequence[float]) -> list[float]:
    """A payment per turn as one per turn that wrote something: a silent one's goes to the one before, or to the first.

    [turns] -> [U].
    """
    found, early = list[float](), 0.0
    for each, turn in zip(paid, rollout.turns, strict=True):
        if len(turn.tokens):
            found.append(each + (0.0 if found else early))
        elif found:
            found[-1] += each
        else:
            early += each
    return found


def turn_bounds(rollout: Rollout) -> tuple[list[int], list[int]]:
    """First and last written token of each turn that has any: [U], [U]."""
    lengths = [len(turn.tokens) for turn in rollout.turns if len(turn.tokens)]
    ends = np.cumsum(lengths, dtype=np.int64)
    return (ends - lengths).tolist(), (ends - 1).tolist()


def turn_returns(rollout: Rollout, discount: float) -> list[float]:
    """What was paid from each turn on."""
    total, returns = 0.0, []
    for reward in reversed(turn_payments(rollout)):
        total = reward + discount * total
        returns.append(total)
    return returns[::-1]


def set_turn_advantages(rollout: Rollout, advantages: Sequence[float]) -> None:
    """Give every token of a turn the turn's advantage."""
    lengths = [len(turn.tokens) for turn in rollout.turns]
    rollout.advantages = np.repeat(np.array(advantages, dtype=np.float32), lengths)
