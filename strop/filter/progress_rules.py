"""An adviser that is a rule, for guessing games: how far a guess is from the middle of what all answers leave possible.

It stands for the vision-language model of GVL, knows no task's answer and no order. To be asked by `Procedural` as
`strop.filter.progress_rules:guessing`.
"""

from __future__ import annotations

import re

from strop.environments.guess import guessed, parse
from strop.filter.frames import shown_in

_FIRST = re.compile(r"^first step: (.*)$", re.MULTILINE)


def guessing(text: str) -> str:
    """100 for a guess in the middle of what is left, 0 for one a whole range away."""
    low, high, _ = parse(text)
    frames = shown_in(text)
    told = [_guess(frame) for frame in [*_FIRST.findall(text), *frames]]
    least = max([number + 1 for number, answer in told if number is not None and answer == "higher"], default=low)
    most = min([number - 1 for number, answer in told if number is not None and answer == "lower"], default=high)
    middle, size = (least + most) / 2, max(high - low, 1)
    far = [1.0 if number is None else min(abs(number - middle) / size, 1.0) for number, _ in map(_guess, frames)]
    return "\n".join(f"{place}: {100 * (1 - each):.1f}" for place, each in enumerate(far, start=1))


def _guess(frame: str) -> tuple[int | None, str]:
    said, _, answer = frame.rpartition("->")
    return guessed(said.strip()), answer.strip()
