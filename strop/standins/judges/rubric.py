"""LLM clients that are rules, for chain sums: a rubric of the right steps, and a judge who looks for each of them.

They stand for the larger model of RuscaRL. To be asked by `Procedural`, as
`strop.standins.judges.rubric:judged_rubric`.
"""

from __future__ import annotations

import re

from strop.environments.format.think_tags import sum_steps
from strop.standins.solution_styles import terms_in
from strop.text.llm_prompt import parts_of

_STEP = re.compile(r"(?<![^\s<>])[^\s<>=]*=[^\s<>]*")
_POINTS = 5  # of each step


def written_rubric(text: str) -> str:
    """The rubric for a task: a line for each step."""
    steps, _ = sum_steps(terms_in(parts_of(text)["task"]))
    return "\n".join(f"{_POINTS}: {step}" for step in steps)


def judged_rubric(text: str) -> str:
    """Whether a completion has a step."""
    parts = parts_of(text)
    return "yes" if parts["requirement"] in _STEP.findall(parts["completion"]) else "no"
