"""Token-level rewards from text spans, stored as rows of `Turn.aux`.

Reward R is stored under "paid/R", one row per token of prompt and completion; tokens of a span named N are scored under
"span/N". Prefix tokens that the policy did not sample cannot be trained on: their reward moves to the rollout's end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from strop.filter.paid_text import Paid, Span
from strop.types import IntArray, Rollout, Turn

Places: TypeAlias = Callable[[IntArray], IntArray]  # characters of the text after each token of a completion: [N]
PAID, SPAN = "paid/", "span/"
ENDS = "ends"  # the name of spans that score where a sentence ends


def misplaced(rollout: Rollout, paid: Paid) -> str:
    """What is wrong with the places; empty where nothing is."""
    for span in paid.spans:
        if not 0 <= span.turn < len(rollout.turns):
            return f"pays turn {span.turn} of {len(rollout.turns)}"
        size = len(rollout.turns[span.turn].message.content)
        if not 0 <= span.start <= span.end <= size or not len(rollout.turns[span.turn].whole):
            return f"pays characters {span.start} to {span.end} of a completion of {size}"
    return ""


def pay(rollout: Rollout, name: str, weight: float, paid: Paid, places: Places) -> float:
    """Note what is paid where; returns what the reward says in all, unweighted."""
    turns, total = list(rollout.turns), paid.end
    for number in sorted({span.turn for span in paid.spans}):
        spans = [span for span in paid.spans if span.turn == number]
        turns[number], earned = _paid(turns[number], f"{PAID}{name}", weight, spans, places)
        total += earned
    rollout.turns = tuple(turns)
    return total


def _paid(turn: Turn, name: str, weight: float, spans: list[Span], places: Places) -> tuple[Turn, float]:
    ends = places(turn.whole)  # [given + N]
    rows, first = len(turn.prompt) + len(turn.tokens), len(turn.prompt) - turn.num_prefix
    noted: dict[str, NDArray[np.float32]] = {name: np.zeros(rows, np.float32)}
    earned = 0.0
    for span in spans:
        high = min(int(np.searchsorted(ends, span.end, "left")), len(ends) - 1)
        low = min(int(np.searchsorted(ends, span.start, "right")), high)
        tokens = np.arange(low, high + 1) + first  # rows of its tokens
        earned += span.value + span.each * len(tokens)
        noted[name][tokens] += np.float32(weight * span.each)
        noted[name][tokens[-1:]] += np.float32(weight * span.value)
        if span.name:
            noted.setdefault(f"{SPAN}{span.name}", np.zeros(rows, np.float32))[tokens] = 1
    return replace(turn, aux={**turn.aux, **noted}), earned
