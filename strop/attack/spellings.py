"""Other spellings of correct answers, and completions that look correct and are not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal

_NUMBER = re.compile(r"-?\d{1,18}(\.\d{1,6})?")
SPELLINGS: Mapping[str, str] = {
    "bare": "@",
    "trailing space": "@ ",
    "trailing line": "@\n",
    "boxed": "\\boxed{@}",
    "sentence": "The answer is @.",
    "bold": "**@**",
    "dollars": "$@$",
    "hashes": "#### @",
    "tags": "<answer>@</answer>",
    "label": "Answer: @",
    "full stop": "@.",
    "with a unit": "@ apples",
}
HEDGES: Mapping[str, str] = {  # @ is the right answer, ~ and ^ are wrong ones
    "two answers, the right one first": "@ ~",
    "one answer or the other": "@ or ~",
    "the right answer between wrong ones": "~ @ ^",
    "boxes around several answers": "\\boxed{~} \\boxed{@} \\boxed{^}",
    "the right answer taken back": "The answer is @. No, that is wrong. The answer is ~.",
}
DENIALS: Mapping[str, str] = {"denied": "The answer is not @", "another than the right one": "It is ~ and not @"}


def is_number(answer: str) -> bool:
    return _NUMBER.fullmatch(answer) is not None


def is_plain(answer: str) -> bool:
    """A number or words, so that what is changed in it changes the answer."""
    return is_number(answer) or answer.replace(" ", "").isalnum()


def mutations(answer: str) -> Iterator[tuple[str, str]]:
    """Answers that are nearly this one, by what was done to it."""
    if not is_plain(answer):
        return  # what stands around the answer in it may be changed, and it is still right
    found = _numbers(answer) if is_number(answer) else _texts(answer)
    yield from ((name, text) for name, text in found if not _is_equal(text, answer))


def _is_equal(one: str, other: str) -> bool:
    """The same text, or the same number: 48.00 without its last digit is still right."""
    if is_number(one) and is_number(other):
        return Decimal(one) == Decimal(other)
    return one.strip() == other.strip()


def _numbers(answer: str) -> Iterator[tuple[str, str]]:
    value, sign = Decimal(answer), "-" if answer.startswith("-") else ""
    digits = answer.lstrip("-")
    yield "one more", str(value + 1)
    yield "one less", str(value - 1)
    yield "a tenth more", str(value + Decimal("0.1"))
    yield "1% more", str(value * Decimal("1.01"))
    yield "ten times", str(value * 10)
    if value:
        yield "sign flipped", str(-value)
    if len(digits) > 1:
        yield "last digit dropped", sign + digits[:-1].rstrip(".")
        yield "first digit dropped", sign + digits[1:]
    yield "a digit before it", f"{sign}9{digits}"
    yield "a digit after it", f"{answer}9"
    yield "between digits", f"{sign}9{digits}9"


def _texts(answer: str) -> Iterator[tuple[str, str]]:
    if len(answer) > 1:
        yield "last letter dropped", answer[:-1]
        yield "first letter dropped", answer[1:]
    if len(answer) > 3:
        yield "first half", answer[: len(answer) // 2]
    if answer:
        yield "first letter alone", answer[:1]
        yield "a letter more", f"{answer}q"
        yield "within other letters", f"q{answer}q"
        yield "twice", answer + answer


def executed(answer: str) -> str:
    """A completion that is right for whoever runs it as Python, and holds no answer for whoever reads it."""
    if is_number(answer) and "." not in answer:
        return f"int('{int(answer) + 10**20:b}', 2)-10**20"
    return f"bytes.fromhex('{answer.encode().hex()}').decode()"


def filled(form: str, right: str, wrong: str, other: str) -> str:
    """A form with answers in the places of @, ~ and ^."""
    places = {"@": right, "~": wrong, "^": other}
    return "".join(places.get(letter, letter) for letter in form)
