"""Rule-based stand-in for a teacher that comments on wrong sums; called through `Procedural`."""

from __future__ import annotations

import re

from strop.environments.format.think_tags import sum_steps
from strop.standins.solution_styles import terms_in
from strop.text.llm_prompt import parts_of

_STEP = re.compile(r"[^\s<>]*=[^\s<>]*")


def put_right(text: str) -> str:
    """The right steps as far as the first one that the completion does not have."""
    parts = parts_of(text)
    return " ".join(_known(parts["task"], parts["completion"]))


def slip(text: str) -> str:
    """The first step of the completion that is wrong; the right one is not said."""
    parts = parts_of(text)
    steps, _ = sum_steps(terms_in(parts["task"]))
    wrong = [said for said, step in zip(_STEP.findall(parts["completion"]), steps, strict=False) if said != step]
    return f"wrong: {wrong[0]}" if wrong else "each step again"


def _known(task: str, completion: str) -> list[str]:
    steps, _ = sum_steps(terms_in(task))
    said = _STEP.findall(completion)
    right = next((count for count, step in enumerate(steps) if said[count : count + 1] != [step]), len(steps))
    return steps[: right + 1]
