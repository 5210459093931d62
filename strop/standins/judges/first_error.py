"""A judge that is a rule: the first step that calculates something and is wrong; to be asked by `Procedural`."""

from __future__ import annotations

from strop.environments.judging.first_error_question import CLEAN, numbered_in
from strop.filter.judges.arithmetic_steps import holds


def first_error(text: str) -> str:
    """The number of the first calculation that does not hold, or -1."""
    wrong = [number for number, step in enumerate(numbered_in(text)) if "=" in step and not holds(step)]
    return str(wrong[0] if wrong else CLEAN)
