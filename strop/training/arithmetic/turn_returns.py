"""Rewards, returns and advantages by turn, and sums over the tokens of a turn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.training.batch import Batch
from strop.types import Rollout

# Rewards and returns of turns, and their spread over tokens.

_PAID, _ENDS = "paid/", "span/ends"  # see `filter/span_rewards.py`


def turn_payments(rollout: Rollout) -> list[float]:
    """Reward of each turn; what rewards add to the environment's own is on the last turn: the sum is the reward."""
    count = len(rollout.turns)
    paid = list(rollout.turn_rewards) if len(rollout.turn_rewards) == count else [0.0] * count
    if paid:
        paid[-1] += rollout.reward - sum(paid)
    return paid


def placed_payments(rollout: Rollout) -> NDArray[np.float64]:
    """Reward of each completion token, from rewards that named its position: [N]."""
    paid = np.zeros(rollout.num_tokens)
    places = [0, *np.cumsum([len(turn.tokens) for turn in rollout.turns]).tolist()]
    for turn, low, high in zip(rollout.turns, places, places[1:], strict=False):
        for name, rows in turn.aux.items():
            if name.startswith(_PAID) and high > low:
                paid[low:high] += rows[len(turn.prompt) :]
    return paid


def token_payments(rollout: Rollout) -> NDArray[np.float64]:
    """Reward of each completion token: placed rewards, and the rest on the last token; the sum is the reward."""
    paid = placed_payments(rollout)
    paid[-1:] += rollout.reward - paid.sum()
    return paid


def ends_of(rollout: Rollout) -> list[int]:
    """The completion tokens at which a sentence ends, as recorded by rewards."""
    recorded = [
        turn.aux[_ENDS][len(turn.prompt) :] if _ENDS in turn.aux else np.zeros(len(turn.tokens))
        for turn in rollout.turns
    ]
    return np.flatnonzero(np.concatenate(recorded)).tolist() if recorded else []


def on_written(rollout: Rollout, paid: Sequence[float]) -> list[float]:
    """Rewards per turn as rewards per non-empty turn: an empty one's goes to the turn before, or to the first.

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
    """First and last completion token of each non-empty turn: [U], [U]."""
    lengths = [len(turn.tokens) for turn in rollout.turns if len(turn.tokens)]
    ends = np.cumsum(lengths, dtype=np.int64)
    return (ends - lengths).tolist(), (ends - 1).tolist()


def turn_returns(rollout: Rollout, discount: float) -> list[float]:
    """Discounted reward from each turn on."""
    total, returns = 0.0, []
    for reward in reversed(turn_payments(rollout)):
        total = reward + discount * total
        returns.append(total)
    return returns[::-1]


def set_turn_advantages(rollout: Rollout, advantages: Sequence[float]) -> None:
    """Set the advantage of every token to its turn's."""
    lengths = [len(turn.tokens) for turn in rollout.turns]
    rollout.advantages = np.repeat(np.array(advantages, dtype=np.float32), lengths)


# Turns in packed batches: which turn a token belongs to, and sums over the tokens of one turn.


def turn_numbers(batch: Batch) -> Tensor:
    """Turn index of each completion token within its rollout, from 0; -1 elsewhere: [T]."""
    opens, so_far = _opened(batch)
    sizes = batch.rollouts.bincount()
    starts = sizes.cumsum(0) - sizes
    earlier = (so_far - opens)[starts]  # [A], turns of the rollouts before
    return torch.where(batch.trainable, so_far - earlier[batch.rollouts] - 1, -1)


def over_turns(values: Tensor, batch: Batch) -> Tensor:
    """The sum of `values` over the turn of each completion token, with gradient; 0 elsewhere: [T]."""
    _, so_far = _opened(batch)
    turns = (so_far - 1).clamp(min=0)  # [T], over the whole batch
    kept = values.where(batch.trainable, values.new_zeros(()))
    sums = values.new_zeros(int(so_far.max()) + 1).index_add(0, turns, kept)
    return sums[turns].where(batch.trainable, values.new_zeros(()))


def _opened(batch: Batch) -> tuple[Tensor, Tensor]:
    """1 where a turn begins, and the number of turns begun so far: [T], [T]."""
    written = batch.trainable
    before = torch.roll(written, 1)
    before[0] = False
    is_first = torch.roll(batch.rollouts, 1) != batch.rollouts
    is_first[0] = True
    opens = (written & (~before | is_first)).to(torch.int64)
    return opens, opens.cumsum(0)
