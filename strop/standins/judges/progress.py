"""Stand-ins for LLM progress judges on guessing games: how far a guess is (GVL), and by how much it helped (BAVT).

They do not know a task's answer. For example `Procedural(guessing)`.
"""

from __future__ import annotations

import re

from strop.environments.bundled.guess import guessed, parse
from strop.filter.judges.progress_frames import shown_in
from strop.filter.judges.step_gain import steps_in

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


def narrowing(text: str) -> str:
    """By what share of what was possible the last guess narrowed it, from 0 to 100; for BAVT's question."""
    low, high, _ = parse(text)
    earlier, last = steps_in(text)
    before, after = _left(low, high, earlier), _left(low, high, [*earlier, last])
    return f"{100 * (1 - after / before):.1f}" if before > 0 else "0"


def _left(low: int, high: int, steps: list[str]) -> int:
    """How many numbers the answers leave possible."""
    for number, answer in map(_guess, steps):
        if number is not None and answer == "higher":
            low = max(low, number + 1)
        elif number is not None and answer == "lower":
            high = min(high, number - 1)
    return max(high - low + 1, 0)
