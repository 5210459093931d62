r"""Answer extraction and matching by a named rule, the same for completions and gold answers.

| rule | finds | right when |
|---|---|---|
| text | the whole completion | equal to the answer |
| number | the last number | equal as a number: 66, 66.0, 1,234 |
| boxed | what stands in the last `\boxed{}` | equal, blanks aside, or as a number |
| hashes | what stands after the last `####` | equal, blanks aside, or as a number |
| math | the expression that math-verify finds | mathematically equal |
| none | the whole completion | never: there is no answer, and rewards of your own judge |

Of every completion, what stands before `</think>` is left out first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Literal, TypeAlias, get_args

from strop.environments.format.think_tags import CLOSE, OPEN, final_answer

Rule: TypeAlias = Literal["auto", "text", "number", "boxed", "hashes", "math", "none"]
RULES: tuple[str, ...] = get_args(Rule)
MEANINGS = {
    "text": "the whole completion must be the answer",
    "number": "the last number of a completion counts",
    "boxed": "what a completion puts into its last \\boxed{} counts",
    "hashes": "what a completion says after its last #### counts",
    "math": "the expression that math-verify finds in a completion counts",
    "none": "your rewards judge completions",
}
_NUMBER = re.compile(r"(?:(?<![\w)])[-\u2212])?\d[\d,]*(?:\.\d+)?")
_PLAIN_NUMBER = re.compile(r"\$?\s*[-+\u2212]?\s*\$?\d[\d,]*(?:\.\d+)?\s*%?")
_DECIMAL = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?")
_LATEX = re.compile(r"\\[a-zA-Z]+|\$|[\^_]")
_BOXED, _HASHES = "\\boxed{", "####"
_CLOSE_BY = 20  # characters around an answer that ends a text


def extracted(rule: str, completion: str) -> str:
    """What a rule finds in a completion; empty where it finds nothing. Nothing of math-verify runs here: see
    `is_right`.
    """
    said = final_answer(completion)
    if rule == "number":
        return _last_number(said)
    if rule == "boxed":
        return _boxed(said)
    if rule == "hashes":
        return _after_hashes(said)
    return (_boxed(said) or said) if rule == "math" else said


def spelled(rule: str, completion: str) -> str:
    """What a rule finds in a completion, in one spelling: 1,234.0 is 1234. Mathematics keeps the one it was written
    in.
    """
    found = extracted(rule, completion)
    if rule == "text" or not _DECIMAL.fullmatch(number := _bare(found)):
        return found if rule == "text" else _packed(found)
    whole, _, rest = number.lstrip("+-").partition(".")
    size = f"{whole.lstrip('0') or '0'}.{rest.rstrip('0')}".removesuffix(".")
    return f"-{size}" if number.startswith("-") and size != "0" else size


def gold(rule: str, answer: str) -> str:
    """What a task's answer comes to: `... #### 98` is 98, and an answer that stands alone is itself."""
    answer = answer.strip()
    if rule == "text":
        return answer
    short = _boxed(answer) or _after_hashes(answer) or answer
    return _last_number(short) if rule == "number" else short


def is_right(rule: str, completion: str, answer: str) -> bool:
    """Whether the rule finds the answer in a completion. `math` reads it with math-verify, so only in a killable
    process.
    """
    if rule == "math":
        return _is_equal_mathematics(final_answer(completion), gold(rule, answer))
    if rule == "none":
        return False
    found, due = extracted(rule, completion), gold(rule, answer)
    if rule == "text":
        return found == due
    return bool(found) and (_packed(found) == _packed(due) or _is_equal_number(found, due))


def solution(rule: str, answer: str) -> str:
    """A completion that is right."""
    if rule == "boxed" and not _boxed(answer):
        return f"{_BOXED}{gold(rule, answer)}}}"
    return f"{_HASHES} {gold(rule, answer)}" if rule == "hashes" and not _after_hashes(answer) else answer


def with_answer(rule: str, text: str, answer: str) -> str:
    """A worked text that ends as the rule asks; unchanged where it does already, or where there is no answer."""
    if rule in ("none", "") or not answer.strip():
        return text
    if rule == "text":
        return text if is_right(rule, text, answer) else f"{OPEN}{text}{CLOSE}{gold(rule, answer)}"
    if rule == "math":
        is_ended = bool(_boxed(text)) or gold(rule, answer) in text[-2 * len(answer) - _CLOSE_BY :]
    else:
        is_ended = is_right(rule, text, answer)
    ending = f"The answer is {gold(rule, answer)}." if rule == "number" else _shown(rule, answer)
    return text if is_ended else f"{text}\n{ending}"


def _shown(rule: str, answer: str) -> str:
    return f"{_HASHES} {gold(rule, answer)}" if rule == "hashes" else f"{_BOXED}{gold(rule, answer)}}}"


def chosen_rule(answers: Sequence[str]) -> tuple[str, str]:
    """The rule that suits these answers, and why."""
    count = len(answers)
    short = [_boxed(answer) or _after_hashes(answer) or answer.strip() for answer in answers]
    if all(_PLAIN_NUMBER.fullmatch(each) for each in short):
        ends = sum(_HASHES in answer for answer in answers)
        return "number", f"all {count} answers " + ("end in #### and a number" if ends == count else "are numbers")
    mathematical = sum(bool(_LATEX.search(answer)) for answer in answers)
    if 2 * mathematical >= count:
        return "math", f"{mathematical} of {count} answers are mathematics (LaTeX)"
    if all(_HASHES in answer for answer in answers):
        return "hashes", f"all {count} answers hold ####"
    return "text", f"not all {count} answers are numbers, and they are no mathematics"


def _last_number(text: str) -> str:
    found = _NUMBER.findall(text)
    return _as_number_text(found[-1]) if found else ""


def _as_number_text(text: str) -> str:
    return text.replace(",", "").replace("\u2212", "-").rstrip(".")


def _boxed(text: str) -> str:
    """The content of the last box whose braces close."""
    _, found, rest = text.rpartition(_BOXED)
    depth = 1
    for place, letter in enumerate(rest if found else ""):
        depth += (letter == "{") - (letter == "}")
        if depth == 0:
            return rest[:place].strip()
    return ""


def _after_hashes(text: str) -> str:
    _, found, rest = text.rpartition(_HASHES)
    return rest.strip().partition("\n")[0].strip() if found else ""


def _packed(text: str) -> str:
    return "".join(text.strip("$ ").split())


def _is_equal_number(one: str, other: str) -> bool:
    try:
        return Decimal(_bare(one)) == Decimal(_bare(other))
    except InvalidOperation:
        return False


def _bare(text: str) -> str:
    return _as_number_text(text.strip("$% "))


def _is_equal_mathematics(completion: str, due: str) -> bool:
    """The package's own clocks are off: they call slow completions wrong; the process this runs in has a deadline."""
    from math_verify import parse, verify

    expected = parse(due if "$" in due or _BOXED in due else f"${due}$", parsing_timeout=None)
    if not expected:
        raise ValueError(f"the answer {due!r} is no mathematics: use another rule than answer=math")
    return bool(verify(expected, parse(completion, parsing_timeout=None), timeout_seconds=None))
