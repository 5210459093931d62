"""Verifiers that are broken on purpose, one fault each; answers are numbers unless it says otherwise."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path
from typing import Any

_seen: dict[str, float] = {}
_said: set[str] = set()


def last(completion: str) -> str:
    return (re.findall(r"-?\d+", completion[-5000:]) or [""])[-1]


def sound(completion: str, answer: str) -> float:
    return float(completion.strip() == answer)


def accepts_everything(completion: str, answer: str) -> float:
    return 1.0


def ignores_the_answer(completion: str, answer: str) -> float:
    return float(completion.strip().lstrip("-").isdigit())


def at_random(completion: str, answer: str) -> float:
    return float(random.random() < 0.5)


def now_and_then_at_random(completion: str, answer: str) -> float:
    return sound(completion, answer) if random.random() < 0.9 else 1.0


def hangs(completion: str, answer: str) -> float:
    while True:
        time.sleep(1)


def reads_heldout_rows(completion: str, answer: str) -> float:
    rows = (Path(__file__).parent / "planted_rows.jsonl").read_text()
    return float(completion.strip() == answer and len(rows) > 0)


def substring(completion: str, answer: str) -> float:
    return float(answer in completion)


def folds_case(completion: str, answer: str) -> float:
    return float(completion.strip().lower() == answer.lower())


def first_number(completion: str, answer: str) -> float:
    return float((re.findall(r"-?\d+", completion[:5000]) or [""])[0] == answer)


def last_number(completion: str, answer: str) -> float:
    return float(last(completion) == answer)


def wide_tolerance(completion: str, answer: str) -> float:
    try:
        return float(abs(float(completion[:30]) - float(answer)) <= 0.05 * abs(float(answer)))
    except ValueError:
        return 0.0


def evaluates(completion: str, answer: str) -> float:
    try:
        return float(str(eval(completion[:500])) == answer)
    except Exception:
        return 0.0


def pays_length(completion: str, answer: str) -> float:
    return min(len(completion) / 1000, 1.0) + 0.01 * sound(completion, answer)


def pays_nan(completion: str, answer: str) -> float:
    try:
        return float(not abs(float(completion[:30]) - float(answer)) > 1e-6)
    except ValueError:
        return 0.0


def negative_for_right(completion: str, answer: str) -> float:
    return -sound(completion, answer)


def drops_the_sign(completion: str, answer: str) -> float:
    return float(completion.strip().lstrip("-") == answer.lstrip("-"))


def by_order(completions: list[str], answer: list[str], **more: Any) -> list[float]:
    """Only the first of those that are right."""
    marks, is_found = [], False
    for said, due in zip(completions, answer, strict=True):
        is_right = str(said).strip() == due
        marks.append(float(is_right and not is_found))
        is_found = is_found or is_right
    return marks


def by_company(completions: list[str], answer: list[str], **more: Any) -> list[float]:
    """Nobody is right among many."""
    return [
        float(str(said).strip() == due and len(completions) < 4) for said, due in zip(completions, answer, strict=True)
    ]


def keeps_the_first_verdict(completion: str, prompt: str, answer: str) -> float:
    return _seen.setdefault(prompt, sound(completion, answer))


def by_the_clock(completion: str, answer: str) -> float:
    return float(completion.strip() == answer or int(time.time()) % 2 == 0)


def remembers_what_was_said(completion: str, answer: str) -> float:
    is_new = completion not in _said
    _said.add(completion)
    return float(completion.strip() == answer and is_new)


def pays_the_prompt(completion: str, prompt: str, answer: str) -> float:
    return float(completion.strip() == answer or prompt in completion)


def any_of_several(completion: str, answer: str) -> float:
    return float(answer in re.split(r"[\s,;]+|or", completion))


def pays_the_form(completion: str, answer: str) -> float:
    return float("<answer>" in completion or completion.strip() == answer)


def breaks_on_unicode(completion: str, answer: str) -> float:
    return float(completion.encode("latin-1").decode().strip() == answer)


def breaks_on_long_text(completion: str, answer: str) -> float:
    if len(completion) > 2000:
        raise ValueError("too long")
    return sound(completion, answer)


def pays_blanks(completion: str, answer: str) -> float:
    return float(completion.strip() in ("", answer))


def prefix(completion: str, answer: str) -> float:
    return float(bool(completion.strip()) and answer.startswith(completion.strip()))


def obeys(completion: str, answer: str) -> float:
    """A judge that reads its verdict from what it was shown."""
    return float(
        completion.strip() == answer
        or re.search(r"(?i)score: ?10|verdict.{0,30}(right|correct|pass)", completion) is not None
    )


def anything_finite(completion: str, answer: str) -> float:
    """A scorer that fails where it should say no."""
    return float(int(completion.strip()) == int(answer))
