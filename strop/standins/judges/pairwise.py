"""Who compares two completions where there is no language model: a rule that checks calculations, asked by
`Procedural`.

It knows no answers: a working whose calculations hold and lead to what is answered is better than one that does not.
"""

from __future__ import annotations

import re

from strop.environments.format.think_tags import CLOSE, OPEN, final_answer
from strop.filter.judges.arithmetic_steps import MOST_STEPS, holds
from strop.text.llm_prompt import parts_of

_STEP = re.compile(r"(?<![^\s<>])[^\s<>=]*=[^\s<>]*")  # from where a word begins


def compared(text: str) -> str:
    """A verdict from -3 to 3 behind a word about each completion; never 0."""
    parts = parts_of(text)
    first, second = (_worth(parts[name]) for name in ("completion", "other"))
    lead = first - second
    strength = 3 if abs(lead) >= 2 else 2 if lead else 1
    return f"first: {first} of 3, second: {second} of 3\nverdict: {-strength if lead < 0 else strength}"


def _worth(completion: str) -> int:
    """A point each for shown working, for calculations that all hold, and for answering what the last one says."""
    steps: list[str] = _STEP.findall(completion.replace(OPEN, " ").replace(CLOSE, " "))
    if not steps:
        return 0
    hold = len(steps) <= MOST_STEPS and all(map(holds, steps))
    return 1 + hold + (final_answer(completion) == steps[-1].rpartition("=")[2])
