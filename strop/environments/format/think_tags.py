"""Think-tag format of completions: a chain of thought between <think> and </think>, then the answer that is checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

OPEN = "<think>"
CLOSE = "</think>"
_NUMERAL = re.compile(r"-?[0-9]+")


def think(steps: Sequence[str], answer: str) -> str:
    """A completion that shows its working, where there is any."""
    return f"{OPEN}{' '.join(steps)}{CLOSE}{answer}" if steps else answer


def final_answer(completion: str) -> str:
    """What stands after the working; a completion whose working never ends has no answer."""
    _, closed, answer = completion.rpartition(CLOSE)
    if not closed and OPEN in completion:
        return ""
    return answer.strip()


def final_number(completion: str) -> str:
    """The number after the working; empty where something else stands there. Zeros in front make another answer."""
    answer = final_answer(completion)
    return answer if _NUMERAL.fullmatch(answer) else ""


def between(text: str, opening: str, closing: str) -> list[str]:
    """What stands between each pair of tags; a lazy regular expression would need the square of the text's length."""
    parts = text.split(closing)[:-1]
    return [part.partition(opening)[2] for part in parts if opening in part]


def sum_steps(terms: Sequence[int], slip: Callable[[int], int] = lambda right: right) -> tuple[list[str], int]:
    """Add from left to right, a step per term; `slip` may change a partial sum, and the error is carried on."""
    total = terms[0]
    steps = []
    for term in terms[1:]:
        result = slip(total + term)
        steps.append(f"{total}+{term}={result}")
        total = result
    return steps, total
