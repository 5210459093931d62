"""Execution of completions' programs on test inputs, in the sandbox.

The sandbox receives inputs and returns outputs. Expected outputs never enter it, so nothing a program does or prints
can make it pass; the error that it reports is its own claim.
"""

from __future__ import annotations

import ast
import asyncio
import enum
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from strop.environments.code.cases import Cases, Form, OneOf
from strop.environments.code.drivers import CHECK, PROGRAM
from strop.environments.format.think_tags import CLOSE, OPEN
from strop.errors import ConfigurationError
from strop.sandbox.execution import Allowance, Ending, Ran
from strop.sandbox.kernel_isolation.confine import best_isolation
from strop.sandbox.python.python_pool import PythonSandbox
from strop.sandbox.python.unconfined_python import PlainProcess
from strop.workers.untrusted_answers import NoAnswer

if TYPE_CHECKING:
    from strop.run import Run

Isolation: TypeAlias = Literal["sandbox", "process"]
_FENCE = "```"
_AT_ONCE = 4  # programs side by side
_MEMORY, _OUTPUT = 128 << 20, 1 << 18  # bytes
_MOST_TURNS = 8  # of a check and its program
_LONGEST_ERROR = 200


@dataclass(frozen=True)
class Program:
    """Program text extracted from a completion, and its start position in the completion."""

    text: str
    start: int = 0

    def line(self, number: int) -> tuple[int, int]:
        """First character of a line and the one behind its last, in the completion; lines are counted from 1."""
        lines = self.text.split("\n")
        begin = self.start + sum(len(line) + 1 for line in lines[: number - 1])
        return begin, begin + len(lines[number - 1])


def program_in(completion: str) -> Program:
    """What stands in the last fence behind the working, or all that stands there; a working without end has none."""
    at = completion.rfind(CLOSE)
    if at < 0 and OPEN in completion:
        return Program("", len(completion))
    begin, end = (at + len(CLOSE) if at >= 0 else 0), len(completion)
    fences = completion.count(_FENCE, begin)
    if fences:
        last = completion.rfind(_FENCE)
        end = last if fences > 1 else end
        opening = completion.rfind(_FENCE, begin, last) if fences > 1 else last
        begin = completion.find("\n", opening, end) + 1 or end  # behind the language's name
    return Program(completion[begin:end], begin)


class Finding(enum.Enum):
    """Outcome of a program on tests; every value is the program's own doing, not the sandbox's."""

    RIGHT = "right"
    WRONG = "wrong"
    ERROR = "error"  # it raised, crashed, or asked for what nobody may have
    SYNTAX = "syntax"
    TIME = "time"
    MEMORY = "memory"
    OUTPUT = "output"


_ENDINGS = {Ending.TIMEOUT: Finding.TIME, Ending.MEMORY: Finding.MEMORY, Ending.OUTPUT: Finding.OUTPUT}


@dataclass(frozen=True)
class Trial:
    """Result of running a program on tests."""

    finding: Finding
    passed: tuple[bool, ...]  # each test
    line: int = 0  # where it failed, by its own word; 0: nowhere in particular
    error: str = ""  # its name, by its own word

    @property
    def is_right(self) -> bool:
        return self.finding is Finding.RIGHT

    @property
    def share(self) -> float:
        """Of the tests, those passed."""
        return sum(self.passed) / len(self.passed)

    @property
    def facts(self) -> dict[str, float]:
        """What a program failed of."""
        return {f"found/{each.value}": float(each is self.finding) for each in Finding if each is not Finding.RIGHT}


@dataclass(frozen=True)
class Trials:
    """Runner of programs: in the sandbox, or unconfined with isolation="process"."""

    isolation: Isolation = "sandbox"  # process: what the model writes runs with the rights of the user
    seconds: float = 2.0  # for all tests of a program
    _sandboxes: list[PythonSandbox | PlainProcess] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.isolation not in ("sandbox", "process"):
            raise ConfigurationError(f"isolation is sandbox or process, got {self.isolation!r}")
        if not self.seconds > 0:
            raise ConfigurationError(f"a trial needs seconds > 0, got {self.seconds:g}")

    def problems(self, run: Run) -> list[str]:
        """Model-written programs are not run where nothing holds them."""
        if self.isolation == "process" or best_isolation() is not None:
            return []
        return [
            "nothing here isolates programs: use Linux on x86-64 with seccomp filters, or say "
            "isolation=process, and what the model writes runs with your rights"
        ]

    async def of(self, completion: str, cases: Cases) -> Trial:
        """Try the program in a completion; a sandbox that could not run it raises, which is no verdict."""
        program = program_in(completion).text
        if cases.form == "check":
            return await self._checked(program, cases)
        return judged(await self._ran(program, cases), cases)

    def alone(self, completion: str, cases: Cases) -> Trial:
        """Try it in an event loop and a sandbox of its own, for whoever cannot wait."""

        async def tried() -> Trial:
            trials = Trials(self.isolation, self.seconds)
            try:
                return await trials.of(completion, cases)
            finally:
                await trials.close()

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, tried()).result()

    async def said(self, completion: str, function: str, inputs: Sequence[list[Any]]) -> list[str]:
        """What the program in a completion says to each input: lines as text, some missing where it ended before."""
        ran = await self._ran(program_in(completion).text, Cases(function, tuple(inputs)))
        return ran.stdout.split("\n")[: len(inputs)]

    async def _checked(self, program: str, cases: Cases) -> Trial:
        """The check and the program run in turns, each in a sandbox of its own, until no value is missing."""
        known: dict[str, tuple[str, str]] = {}
        trial = Trial(Finding.WRONG, (False,))
        for _ in range(_MOST_TURNS):
            need, passed = await self._asked_for(cases, known)
            if not need:
                is_right = bool(passed) and all(passed)
                found = Finding.RIGHT if is_right else trial.finding if trial.error else Finding.WRONG
                return replace(trial, finding=found, passed=passed or (False,))
            ran = await self._ran(program, replace(cases, inputs=tuple(need), form="expression"))
            trial = judged(ran, replace(cases, inputs=tuple(need), outputs=(NOTHING,) * len(need), form="expression"))
            if ran.ending is not Ending.FINISHED or trial.finding is Finding.SYNTAX:
                return replace(trial, passed=(*passed, False))
            known |= dict(zip(need, map(_told, ran.stdout.split("\n")), strict=False))
            known |= {source: ("error", "RuntimeError") for source in need if source not in known}
        return trial

    async def _asked_for(
        self, cases: Cases, known: Mapping[str, tuple[str, str]]
    ) -> tuple[list[str], tuple[bool, ...]]:
        """Calls whose values a check needs, and which of its asserts hold."""
        asked = {"names": [cases.function], "setup": cases.setup, "code": cases.code, "known": dict(known)}
        ran = await self._run(CHECK, asked)
        try:
            need, passed = json.loads(ran.stdout)
        except ValueError:
            raise NoAnswer(
                f"the check of the tests did not end: {ran.ending.value} {ran.stderr[-_LONGEST_ERROR:]}"
            ) from None
        return list(dict.fromkeys(need)), tuple(passed)

    async def _ran(self, program: str, cases: Cases) -> Ran:
        asked = {"program": program, "setup": cases.setup, "function": cases.function, "form": cases.form}
        return await self._run(PROGRAM, asked | {"inputs": cases.inputs})

    async def _run(self, driver: str, asked: Mapping[str, Any]) -> Ran:
        if not self._sandboxes:
            self._sandboxes.append(PlainProcess() if self.isolation == "process" else PythonSandbox(at_once=_AT_ONCE))
        ran = await self._sandboxes[0].run(driver, json.dumps(asked), Allowance(self.seconds, _MEMORY, _OUTPUT))
        if ran.is_envs_fault:
            raise NoAnswer(f"the sandbox could not run the program: {ran.ending.value}: {ran.stderr[:_LONGEST_ERROR]}")
        return ran

    async def close(self) -> None:
        while self._sandboxes:
            await self._sandboxes.pop().close()

    def __getstate__(self) -> dict[str, Any]:
        return {"isolation": self.isolation, "seconds": self.seconds, "_sandboxes": []}


NOTHING = object()  # an output that no program gives


def judged(ran: Ran, cases: Cases) -> Trial:
    """Compare what came with what should have come; nothing of it is believed but how it failed."""
    lines = ran.stdout.split("\n")[: len(cases.outputs)]
    found = [_told(line) for line in lines]
    passed = tuple(
        place < len(found) and found[place][0] == "value" and _is_due(lines[place], output, cases.form)
        for place, output in enumerate(cases.outputs)
    )
    if all(passed):
        return Trial(Finding.RIGHT, passed)
    if ran.ending in _ENDINGS:
        return Trial(_ENDINGS[ran.ending], passed)
    for line in lines:
        match _read(line):
            case [("error" | "syntax") as kind, int(place), str(name)]:
                return Trial(Finding(kind), passed, max(place, 0), name)
    is_whole = len([line for line in lines if line]) == len(cases.outputs)
    return Trial(Finding.WRONG if is_whole else Finding.ERROR, passed)


def _is_due(line: str, output: Any, form: Form) -> bool:
    """Whether a line says the output: the same JSON, an equal Python value, or the same printed lines."""
    if isinstance(output, OneOf):
        return _value(line) in output.values
    if form == "call":
        return line == json.dumps(["value", output])
    said = _value(line)
    if form == "stdin":
        return isinstance(said, str) and is_printed(said, str(output))
    try:
        return isinstance(said, str) and bool(ast.literal_eval(said) == output)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return False


def is_printed(said: str, due: str) -> bool:
    """Whether two outputs have the same words on the same lines; numbers may be spelled differently."""
    lines, wanted = ([line.split() for line in text.strip().splitlines()] for text in (said, due))
    return len(lines) == len(wanted) and all(
        len(line) == len(want) and all(map(_is_same_word, line, want)) for line, want in zip(lines, wanted, strict=True)
    )


def _is_same_word(said: str, due: str) -> bool:
    if said == due:
        return True
    if "." not in due and "." not in said:
        return False
    try:
        return Decimal(said) == Decimal(due)
    except InvalidOperation:
        return False


def _told(line: str) -> tuple[str, str]:
    """The kind of a line and its value as text, or the name of its error."""
    if line.startswith('["value", '):
        return "value", value if isinstance(value := _value(line), str) else ""
    read = _read(line)
    return "error", str(read[2]) if isinstance(read, list) and len(read) == 3 else "RuntimeError"


def _value(line: str) -> Any:
    try:
        read = json.loads(line)
    except (ValueError, RecursionError):
        return NOTHING
    return read[1] if isinstance(read, list) and len(read) == 2 and read[0] == "value" else NOTHING


def _read(line: str) -> Any:
    if not line.startswith(('["error', '["syntax')) or len(line) > _LONGEST_ERROR:
        return None
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
