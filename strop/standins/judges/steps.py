"""Rule-based stand-ins for LLM judges of single steps: first errors, sentences, continuations, progress."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from strop.environments.bundled.next_segment import continues
from strop.environments.judging.first_error_question import CLEAN, numbered_in
from strop.filter.judges.arithmetic_steps import Calculations, StepJudge, holds
from strop.filter.paid_text import Span
from strop.text.llm_prompt import parts_of
from strop.types import Rollout

# A judge of steps to whom all of them are equally right: what process rewards pay for steps as such, for controls.


@dataclass(frozen=True)
class StepsAlike(StepJudge):
    """The steps that `inner` finds, each judged correct."""

    inner: StepJudge = field(default_factory=Calculations)

    def steps(self, rollout: Rollout) -> list[Span]:
        return [replace(step, value=1.0) for step in self.inner.steps(rollout)]


# A judge of continuations that is a rule: the words must be the same; to be asked by `Procedural`.


def continued(text: str) -> str:
    """yes or no."""
    parts = parts_of(text)
    following, _, after = parts["answer"].partition("\n")
    return "yes" if continues(parts["completion"], following, after) else "no"


# A judge that is a rule: the first step that calculates something and is wrong; to be asked by `Procedural`.


def first_error(text: str) -> str:
    """The number of the first calculation that does not hold, or -1."""
    wrong = [number for number, step in enumerate(numbered_in(text)) if "=" in step and not holds(step)]
    return str(wrong[0] if wrong else CLEAN)


# An LLM client that is a rule, for messages of tool environments: whatever is no complaint shows progress.
#
# It stands for the language model that labels messages in ONI. To be asked by `Procedural`, as
# `strop.standins.judges.steps:labelled`.


def labelled(text: str) -> str:
    """Yes or no."""
    return "no" if parts_of(text)["completion"].startswith("error") else "yes"


# A judge of sentences that is a rule, for sums: does each calculation use what was given, and does it hold?
#
# It stands for TRM's reward model and knows no task's answer. To be asked by `Procedural`, as
# `strop.standins.judges.steps:judged_sentences`.

_NUMBER = re.compile(r"\d+")
_LINE = re.compile(r"(\d+): (.*)")


def judged_sentences(text: str) -> str:
    """Faithful: all numbers stand in the task or came out before. Correct: a calculation holds, an answer came out."""
    parts = parts_of(text)
    known, last, lines = set(_NUMBER.findall(parts["task"])), "", []
    for number, sentence in _LINE.findall(parts["completion"]):
        left, is_sum, right = sentence.partition("=")
        is_faithful = set(_NUMBER.findall(left)) <= known
        is_correct = holds(sentence) if is_sum else bool(last) and sentence.strip() == last
        last = right.strip() if is_sum else last
        known.add(last)
        kept, right_or_not = "faithful" if is_faithful else "unfaithful", "correct" if is_correct else "incorrect"
        lines.append(f"{number}: {kept}; {left.strip()}; {right_or_not}")
    return "\n".join(lines)
