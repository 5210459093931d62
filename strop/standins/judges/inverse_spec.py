"""LLM clients that are rules, for sums: the brief that a sum is, and the one that a worked solution seems to answer.

They stand for the language models of inverse specification. To be asked by `Procedural`, for example as
`strop.standins.judges.inverse_spec:guessed`.
"""

from __future__ import annotations

import re

from strop.filter.judges.arithmetic_steps import MOST_STEPS, holds
from strop.text.llm_prompt import parts_of

_NUMBER = re.compile(r"\d+")
_STEP = re.compile(r"(?<![^\s<>])[^\s<>=]*=[^\s<>]*")


def told(text: str) -> str:
    """The topic is the first number, the themes are the others, the size how many steps they take."""
    return _brief(_NUMBER.findall(parts_of(text)["task"]))


def guessed(text: str) -> str:
    """The numbers that a working adds: both of its first step, then one of each; what does not hold is not read."""
    steps = [step for step in _STEP.findall(parts_of(text)["completion"])[:MOST_STEPS] if holds(step)]
    sums = [_NUMBER.findall(step.partition("=")[0]) for step in steps]
    numbers = [number for place, each in enumerate(sums) for number in (each if not place else each[1:])]
    return _brief(numbers) if numbers else "audience: nobody"


def _brief(numbers: list[str]) -> str:
    first, others = numbers[:1], numbers[1:]
    return f"topic: {' '.join(first)}\naudience: pupils\nsize: {len(others)}\nthemes: {', '.join(others)}"
