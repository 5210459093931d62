"""True/false questions about an answer, and the tokens of their verdicts."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from strop.environments.format.think_tags import final_answer
from strop.environments.judging.easier_question import Easier, asked, wrong_answers
from strop.types import Message, Task

# Verification tasks (Curr-ReFT's first stage, 2503.07065): an answer is shown, and the question is whether it is right.
#
# Reading: a wrong answer is that of another task of the same environment; half of all are right, so that guessing earns
# 1/2.


@dataclass(frozen=True)
class Judged(Easier):
    """Verification environment: to `47+12=? is it 59?` the completion is yes or no."""

    @property
    def name(self) -> str:
        return f"judged-{self.env.name}"

    def task(self, index: int, heldout: bool = False) -> Task:
        inner = self.env.task(index, heldout)
        is_right = random.Random(f"judged/{inner.id}").random() < 0.5
        shown = inner.answer if is_right else next(wrong_answers(self.env, index, heldout))
        return asked(inner, f"is it {shown}?", "yes" if is_right else "no", self.name)

    def answer(self, completion: str) -> str:
        said = final_answer(completion)
        return said if said in ("yes", "no") else ""


# One-token verdicts: the prompt of a generative judge about a completion, and its two answer tokens.

GOOD, BAD = "+", "-"
ASKED = "good or bad?"


def about(messages: Sequence[Message], completion: str) -> tuple[Message, ...]:
    """What is read before a verdict: the task, the completion to it, and the question."""
    return (*messages, Message("assistant", completion, is_completion=True), Message("user", ASKED))
