"""Stand-in for an LLM that writes tests for small functions (HardTests, 2505.24098): three kinds of inputs, a
validator, oracles.

Each rule reads a question with the task and answers with text. Inputs are a JSON list, programs are programs. The third
oracle makes deliberate mistakes.
Papers: hardtests
"""

from __future__ import annotations

import ast
import json
import random
import re
from collections.abc import Callable
from typing import Any

from strop.environments.bundled.programs import DOMAINS, Domain, Step, head, written
from strop.text.llm_prompt import parts_of

_CALL = re.compile(r"f\((.*?)\)=")
_SLIPS = (("abs(", "("), ("max(", "min("), ("sorted(x)", "x"), ("x%", "x//"))
_MANY, _FAR = 300, 10**9


def direct(text: str) -> str:
    """Ten plain inputs."""
    return _inputs(text, lambda domain, stream: [domain.value(stream) for _ in range(10)])


def special(text: str) -> str:
    """Ten inputs by chance and the ends of what there is: nothing, one thing, the same thing often."""
    ends: dict[type, list[Any]] = {int: [0, 1, -1, 99, -99], list: [[], [0], [3, 3, 3], [-5]], str: ["", "a", "aaa"]}
    return _inputs(text, lambda domain, stream: [*ends[type(domain.value(stream))], *_many(domain, stream)])


def hacking(text: str) -> str:
    """Inputs that slow or careless programs fail; some are larger than a validator allows."""
    large: dict[type, list[Any]] = {
        int: [_FAR, -_FAR, 10**6, -(10**5), 10**30],
        list: [list(range(_MANY // 3)), [9, -9] * 40, list(range(9 * _MANY))],
        str: ["ab" * 50, "f" * 99, "a" * (9 * _MANY)],
    }
    return _inputs(text, lambda domain, stream: large[type(domain.value(stream))])


def written_validator(text: str) -> str:
    """A program that says whether an input may be asked about."""
    kind = type(_example(text)).__name__
    bound = f"abs(x)<={_FAR}" if kind == "int" else f"len(x)<={_MANY}"
    return f"{head()}\n return isinstance(x,{kind}) and {bound}"


def straight(text: str) -> str:
    """A line for each step."""
    return written(_steps(text))


def nested(text: str) -> str:
    """One expression."""
    code = "x"
    for step in _steps(text):
        code = re.sub(r"\bx\b", lambda found, inner=code: f"({inner})", step.code)  # type: ignore[misc]
    return f"{head()}\n return {code}"


def careless(text: str) -> str:
    """Some of what it does is something else."""
    program = straight(text)
    for right, slip in _SLIPS:
        program = program.replace(right, slip)
    return program


def _task(text: str) -> str:
    return parts_of(text)["task"]


def _example(text: str) -> Any:
    """The first input that the task shows."""
    return ast.literal_eval(_CALL.findall(_task(text).partition(". ")[2])[0])


def _domain(text: str) -> Domain:
    return DOMAINS[{int: "number", list: "list", str: "text"}[type(_example(text))]]


def _steps(text: str) -> list[Step]:
    domain = _domain(text)
    known = {step.words: step for number in range(2, 10) for step in (*domain.steps(number), *domain.ends)}
    said = _task(text).partition(": ")[2].partition(". ")[0]
    return [known[words] for words in said.split(", ")]


def _many(domain: Domain, stream: random.Random) -> list[Any]:
    return [domain.value(stream) for _ in range(10)]


def _inputs(text: str, made: Callable[[Domain, random.Random], list[Any]]) -> str:
    return json.dumps(made(_domain(text), random.Random(f"{made.__qualname__}/{_task(text)}")))
