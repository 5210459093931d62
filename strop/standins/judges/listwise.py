"""A judge of several replies that is a rule: which share of their calculations hold; to be asked by `Procedural`."""

from __future__ import annotations

from strop.environments.judging.listwise import replies_in
from strop.filter.judges.arithmetic_steps import MOST_STEPS, holds


def scored(text: str) -> str:
    """A number from 0 to 10 for each reply."""
    return " ".join(str(_score(reply)) for reply in replies_in(text))


def _score(reply: str) -> int:
    steps = [word for word in reply.split() if "=" in word]
    return round(10 * sum(map(holds, steps[:MOST_STEPS])) / len(steps)) if steps else 0
