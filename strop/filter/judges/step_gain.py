"""Per-turn progress judging (BAVT): the judge's prompt, and the parser of its answer."""

from __future__ import annotations

from collections.abc import Sequence

from strop.filter.judges.readers import Number
from strop.text.llm_prompt import judgement

ASKED = (
    "By how much did the last step help, from -100 (it did harm) to 100 (all that was missing)? Answer with the number."
)
GAIN = Number(-100, 100)  # the form of an answer


def question(task: str, earlier: Sequence[str], last: str, asked: str = ASKED) -> str:
    """What an LLM client reads; every step is one line, so that none can pass for another part."""
    steps = [f"step: {step}" for step in earlier]
    return judgement(asked, steps="\n".join([f"task: {' '.join(task.split())}", *steps, f"last step: {last}"]))


def steps_in(text: str) -> tuple[list[str], str]:
    """Earlier steps and the last one again, for LLM clients that are rules."""
    lines = text.splitlines()
    earlier = [line.removeprefix("step: ") for line in lines if line.startswith("step: ")]
    (last,) = [line.removeprefix("last step: ") for line in lines if line.startswith("last step: ")]
    return earlier, last
