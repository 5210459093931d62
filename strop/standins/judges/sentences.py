"""A judge of sentences that is a rule, for sums: does each calculation use what was given, and does it hold?

It stands for TRM's reward model and knows no task's answer. To be asked by `Procedural`, as
`strop.standins.judges.sentences:judged_sentences`.
"""

from __future__ import annotations

import re

from strop.filter.judges.arithmetic_steps import holds
from strop.text.llm_prompt import parts_of

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
