"""Target accuracy of the pocket model in each environment and level, and the kinds of deliberate mistakes.

Levels that are missing here are never in the corpus: the highest of every environment, and every true composition.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

# share of right demonstrations; for `guess`, the share played by halving instead of counting up
ACCURACY: Mapping[str, Mapping[int, float]] = {
    "arithmetic": {1: 0.97, 2: 0.82, 3: 0.63, 4: 0.42, 5: 0.22, 6: 0.06},
    "compose": {1: 0.85},
    "countdown": {2: 0.75, 3: 1.0, 4: 1.0},
    "keyvalue": {1: 0.95, 2: 0.70, 3: 0.45, 4: 0.20},
    "guess": {1: 0.90, 2: 0.50, 3: 0.25, 4: 0.05},
    "next_state": {1: 0.70, 2: 0.50, 3: 0.30},
    "search": {1: 0.70, 2: 0.30},
}
# share of verdicts about a completion that are right
VERDICTS = 0.75
# `careful:` makes this share of the usual mistakes; `quick:` is right this share as often
CAREFUL_MISTAKES = 0.25
QUICK_ACCURACY = 0.6


def step_error(env: str, level: int, steps: int) -> float:
    """The probability of a mistake in each step that leaves the intended share of right answers: (1 - e)^steps =
    accuracy.
    """
    return 1.0 - float(ACCURACY[env][level] ** (1.0 / max(steps, 1)))


def slip_number(stream: random.Random, error: float) -> Callable[[int], int]:
    """A partial sum that is sometimes a little too large; never too small, or two slips could cancel out."""

    def slip(right: int) -> int:
        if stream.random() >= error:
            return right
        return right + stream.choice((1, 2, 10) if right >= 20 else (1, 2))

    return slip


def slip_text(stream: random.Random, error: float) -> Callable[[str], str]:
    """A string in which two neighbours are sometimes exchanged or a letter is doubled."""

    def slip(right: str) -> str:
        if stream.random() >= error:
            return right
        at = stream.randrange(len(right) - 1)
        left, right_letter = right[at], right[at + 1]
        wrong = right[:at] + right_letter + left + right[at + 2 :]
        return wrong if wrong != right else right[:at] + left + right[at:]

    return slip
