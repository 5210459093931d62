"""A judge of several completions that is a rule: which share of their calculations hold; to be asked by
`Procedural`.
"""

from __future__ import annotations

from strop.environments.judging.listwise import completions_in
from strop.filter.judges.arithmetic_steps import MOST_STEPS, holds


def scored_list(text: str) -> str:
    """A number from 0 to 10 for each completion."""
    return " ".join(str(_score(completion)) for completion in completions_in(text))


def _score(completion: str) -> int:
    steps = [word for word in completion.split() if "=" in word]
    return round(10 * sum(map(holds, steps[:MOST_STEPS])) / len(steps)) if steps else 0
