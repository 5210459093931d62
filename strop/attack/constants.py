"""Constant completions, and which of them happen to be a task's correct answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from strop.environments.format.think_tags import final_answer

_VALUES = ("0", "1", "-1", "nan", "inf", "yes", "no", "True", "False", "None")
_REST = ("", " ", "?", "I do not know.", "[]", "{}", "<answer></answer>", "\\boxed{}", "The answer is")
_LONG = "word " * 400
_SAME = ({"true", "yes", "1", "right", "correct"}, {"false", "no", "0", "wrong", "incorrect"})
_NUMBER = re.compile(r"[-+]?\d{1,30}(\.\d{1,30})?")
_LONGEST_FRAME = 40  # characters around an answer


@dataclass(frozen=True)
class ConstantCompletion:
    """The same completion for every task: `text` with the prompt in place of `prompt`; `value` is its answer."""

    name: str
    text: str
    value: str
    is_prompt: bool = False

    def said(self, prompt: str) -> str:
        return prompt if self.is_prompt else self.text


def constants(frame: str, frequent: str) -> list[ConstantCompletion]:
    """All that are tried; answers among them stand bare, and in the frame that right answers have."""
    values = list(dict.fromkeys((*_VALUES, *([frequent] if frequent else []))))
    bare = [ConstantCompletion(shown_value(value), value, value) for value in values]
    framed = [ConstantCompletion(frame.replace("@", value), frame.replace("@", value), value) for value in values]
    rest = [ConstantCompletion(shown_value(text), text, text.strip()) for text in _REST]
    others = [ConstantCompletion("the prompt", "", "", is_prompt=True), ConstantCompletion("a long text", _LONG, _LONG)]
    return [*bare, *(framed if frame != "@" else []), *rest, *others]


def shown_value(text: str) -> str:
    return text if text.strip() else {"": "nothing", " ": "a space"}[text]


def frame_of(completion: str, answer: str) -> str:
    """How a right completion puts its answer, with @ in its place: `\\boxed{@}`, `#### @`."""
    line = final_answer(completion).rpartition("\n")[2]
    if not answer or answer not in line or "@" in line:
        return "@"
    before, _, after = line.rpartition(answer)
    return f"{before}@{after}" if len(before + after) <= _LONGEST_FRAME else "@"


def is_same(one: str, other: str) -> bool:
    """Whether two answers are one, generously read: case, marks around them and spellings of numbers aside."""
    left, right = plain_answer(one), plain_answer(other)
    return left == right or any(left in words and right in words for words in _SAME)


def plain_answer(text: str) -> str:
    """An answer without what people put around it."""
    bare = re.sub(r"\\boxed\{(.*)\}|</?answer>", r"\1", text.strip()[-1000:], flags=re.DOTALL)
    bare = "".join(bare.lower().strip(" \t\n\"'`.$%[](){}").split()).replace(",", "")
    if not _NUMBER.fullmatch(bare):
        return bare
    value = float(bare)
    return str(int(value)) if value.is_integer() else str(value)


def most_frequent(answers: Sequence[str]) -> tuple[str, float]:
    """The answer that most tasks have, and their share."""
    if not answers:
        return "", 0.0
    spelled = {plain_answer(answer): answer for answer in reversed(answers)}
    ((name, count),) = Counter(plain_answer(answer) for answer in answers).most_common(1)
    return spelled[name], count / len(answers)
