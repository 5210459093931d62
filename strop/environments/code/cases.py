"""Tests of a programming task, from its answer or from the columns of its row.

| dataset | columns |
|---|---|
| your own | `tests`: assert lines, a `check(candidate)` function, or objects with `input` and `output`; `entry_point` |
| HumanEval | `test`, `entry_point`, `canonical_solution` |
| MBPP | `test_list`, `test_setup_code`, `code` |
| APPS, TACO | `input_output`, `solutions`, `starter_code` |
| LiveCodeBench | `public_test_cases`, `private_test_cases` where they are JSON, `metadata`, `starter_code` |
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from strop.environments.code.asserts import compared
from strop.environments.data.rows import columns_of
from strop.errors import DataError
from strop.types import Task

Form = Literal["call", "expression", "stdin", "check"]
TESTS = ("tests", "test", "test_list", "input_output", "public_test_cases")  # columns that hold them
_SETUP = ("test_setup_code", "test_imports", "setup_code")
_PROGRAMS = ("canonical_solution", "code", "solution", "solutions", "completion")
_NAMES = ("entry_point", "function", "fn_name", "func_name")


@dataclass(frozen=True)
class OneOf:
    """Several outputs of which each is right."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Cases:
    """Inputs of a program and what should come of them; as text, `Task.answer` of a bundled programming task.

    call: arguments of the function; expression: Python that calls it; stdin: what a whole program reads, and prints;
    check: `code` that asserts, and that asks the program by calls alone.
    """

    function: str
    inputs: tuple[Any, ...] = ()
    outputs: tuple[Any, ...] = ()
    solution: str = ""  # a program that is right
    form: Form = "call"
    setup: str = ""  # runs before the program
    code: str = ""  # of a check

    def __str__(self) -> str:
        return json.dumps([self.function, self.inputs, self.outputs, self.solution])


def cases_of(task: Task) -> Cases:
    """The tests of a task."""
    found = _bundled(task.answer) or row_cases(task)
    if found is None:
        raise DataError(f"task {task.id} of {task.source} has no tests: it is no programming task; {REMEDY}")
    return found


REMEDY = "add a column `tests` to each row (docs/bring-your-data.md has its forms), or use env=programs:LEVEL"


def _bundled(answer: str) -> Cases | None:
    if not answer.startswith('["'):
        return None
    try:
        read = json.loads(answer)
    except ValueError:
        return None
    match read:
        case [str(function), list(inputs), list(outputs), str(solution)] if len(inputs) == len(outputs) > 0:
            return Cases(function, tuple(inputs), tuple(outputs), solution)
    return None


def row_cases(task: Task) -> Cases | None:
    """The tests in the columns of a row; None where no column holds any. DataError says what is wrong with them."""
    return _read(task.columns, "\n".join(message.content for message in task.messages)) if task.columns else None


def has_tests(row: Mapping[str, Any]) -> bool:
    """Whether a row brings tests."""
    tests = row.get("test")  # in HumanEval; elsewhere it may be anything
    is_check = isinstance(tests, str) and "assert" in tests
    return is_check or any(row.get(name) for name in TESTS if name != "test") or _is_pairs(_truth(row))


@lru_cache(maxsize=4096)
def _read(columns: str, prompt: str) -> Cases | None:
    row = columns_of(Task((), "", "", columns=columns))
    if not has_tests(row):
        return None
    function = _function(row)
    setup = "\n".join(_text(row.get(name)) for name in _SETUP if row.get(name))
    if "canonical_solution" in row and function and f"def {function}" in prompt:
        setup = f"{setup}\n{prompt}"  # HumanEval's prompt is the head of the program
    found = _tests(row, function)
    return Cases(
        found.function, found.inputs, found.outputs, _program(row, found, prompt), found.form, setup, found.code
    )


def _tests(row: Mapping[str, Any], function: str) -> Cases:
    for name in TESTS:
        if tests := _json(row.get(name)):
            more = _json(row.get("private_test_cases")) if name == "public_test_cases" else []
            return _cases(
                [*tests, *more] if isinstance(tests, list) and isinstance(more, list) else tests, function, name
            )
    return _cases(_truth(row), function, "reward_model")


def _cases(tests: Any, function: str, column: str) -> Cases:
    if _is_pairs(tests):
        return _pairs(tests["inputs"], tests["outputs"], tests.get("fn_name") or function)
    if isinstance(tests, list) and all(isinstance(test, Mapping) for test in tests):
        return _listed(tests, function, column)
    lines = [tests] if isinstance(tests, str) else tests if isinstance(tests, list) else []
    if not lines or not all(isinstance(line, str) for line in lines):
        raise DataError(f"the column `{column}` holds no tests: {_FORMS}; got {str(tests)[:80]!r}")
    return _asserted("\n".join(lines), function, column)


_FORMS = (
    "it needs assert lines, a function check(candidate) with `entry_point`, a list of objects with `input` and "
    "`output`, or an object with `inputs` and `outputs`"
)


def _pairs(inputs: Sequence[Any], outputs: Sequence[Any], function: str) -> Cases:
    """APPS: with a function, arguments and results, these perhaps in a list of one; without, lines read and printed."""
    if function:
        results = tuple(
            OneOf((each, *each) if isinstance(each, list) and len(each) == 1 else (each,)) for each in outputs
        )
        return Cases(function, tuple(_arguments(each) for each in inputs), results)
    return Cases("", tuple(map(_lines, inputs)), tuple(map(_lines, outputs)), form="stdin")


def _listed(tests: Sequence[Mapping[str, Any]], function: str, column: str) -> Cases:
    """Objects with `input` and `output`; LiveCodeBench's functional ones hold an argument in JSON on each line."""
    inputs = [next((test[name] for name in ("input", "args", "inputs") if name in test), None) for test in tests]
    outputs = [next((test[name] for name in ("output", "expected", "outputs") if name in test), None) for test in tests]
    if not tests or any(each is None for each in (*inputs, *outputs)):
        raise DataError(f"each test in `{column}` needs an `input` and an `output`, got {str(tests)[:80]}")
    is_functional = [test.get("testtype", test.get("type")) == "functional" for test in tests]
    if any(is_functional):
        arguments = tuple([json.loads(line) for line in str(each).splitlines() if line.strip()] for each in inputs)
        return Cases(function, arguments, tuple(OneOf((json.loads(str(each)),)) for each in outputs))
    if function and not all(
        isinstance(each, str) and isinstance(out, str) for each, out in zip(inputs, outputs, strict=True)
    ):
        return Cases(function, tuple(map(_arguments, inputs)), tuple(OneOf((each,)) for each in outputs))
    return Cases("", tuple(map(_lines, inputs)), tuple(map(_lines, outputs)), form="stdin")


def _asserted(code: str, function: str, column: str) -> Cases:
    """Assert lines that compare with a literal become expressions, whose results are compared outside of the sandbox;
    all other code is a check.
    """
    try:
        function, pairs = compared(code, function)
    except (SyntaxError, ValueError) as error:
        raise DataError(f"the column `{column}` holds no tests that can be run ({error}): {_FORMS}") from None
    if pairs:
        return Cases(function, tuple(text for text, _ in pairs), tuple(value for _, value in pairs), form="expression")
    return Cases(function, form="check", code=code)


def _function(row: Mapping[str, Any]) -> str:
    metadata = _json(row.get("metadata"))
    places = (row, metadata if isinstance(metadata, Mapping) else {})
    return next((str(place[name]) for place in places for name in _NAMES if place.get(name)), "")


def _program(row: Mapping[str, Any], found: Cases, prompt: str) -> str:
    """A right program of the row; empty where there is none."""
    for name in _PROGRAMS:
        texts = _json(row.get(name))
        text = next((each for each in (texts if isinstance(texts, list) else [texts]) if isinstance(each, str)), "")
        if text.strip():
            is_body = name == "canonical_solution" and f"def {found.function}" not in text
            return f"{prompt}{text}" if is_body else _unfenced(text)
    return ""


def _unfenced(text: str) -> str:
    if "```" not in text:
        return text
    return text.split("```")[-2].partition("\n")[2] if text.count("```") > 1 else text


def _truth(row: Mapping[str, Any]) -> Any:
    held = row.get("reward_model")
    return _json(held.get("ground_truth")) if isinstance(held, Mapping) else None


def _is_pairs(tests: Any) -> bool:
    is_both = (
        isinstance(tests, Mapping) and isinstance(tests.get("inputs"), list) and isinstance(tests.get("outputs"), list)
    )
    return is_both and len(tests["inputs"]) == len(tests["outputs"]) > 0


def _arguments(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [given]


def _lines(text: Any) -> str:
    return "\n".join(map(str, text)) if isinstance(text, list) else str(text)


def _json(text: Any) -> Any:
    """What a column of JSON holds; a text that is none stays."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text) if text.lstrip()[:1] in ("[", "{") else text
    except ValueError:
        return text


def _text(setup: Any) -> str:
    return "\n".join(map(str, setup)) if isinstance(setup, list) else str(setup)
