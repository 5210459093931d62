"""Execution of completions' programs on test inputs, in the sandbox.

The sandbox receives inputs and returns outputs. Expected outputs never enter it, so nothing a program does or prints
can make it pass; the error that it reports is its own claim.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from strop.environments.format.think_tags import CLOSE, OPEN
from strop.errors import ConfigurationError, DataError
from strop.sandbox.execution import Allowance, Ending, Ran
from strop.sandbox.kernel_isolation.confine import best_isolation
from strop.sandbox.python.python_pool import PythonSandbox
from strop.sandbox.python.unconfined_python import PlainProcess
from strop.types import Task
from strop.workers.untrusted_answers import NoAnswer

if TYPE_CHECKING:
    from strop.run import Run

Isolation: TypeAlias = Literal["sandbox", "process"]
_FENCE = "```"
_AT_ONCE = 4  # programs side by side
_MEMORY, _OUTPUT = 128 << 20, 1 << 16  # bytes
_LONGEST_ERROR = 200
# what runs in the sandbox; what a program itself prints goes nowhere, and each answer leaves before the next call
_DRIVER = """
import io, json, sys
told, sys.stdout = sys.stdout, io.StringIO()
def say(*said): print(json.dumps(said), file=told, flush=True)
def place(trace):
    line = 0
    while trace:
        line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == "<completion>" else line
        trace = trace.tb_next
    return line
def tried(work, *given):
    try: return ("value", work(*given))
    except MemoryError: raise
    except SyntaxError as error: return ("syntax", error.lineno or 0, type(error).__name__)
    except BaseException as error: return ("error", place(error.__traceback__), type(error).__name__)
asked, space = json.loads(sys.stdin.read()), {"__name__": "completion"}
def load():
    exec(compile(asked["program"], "<completion>", "exec"), space)
    return space[asked["function"]]
found = tried(load)
if found[0] != "value": say(*found)
else:
    for given in asked["inputs"]:
        answer = tried(found[1], *given)
        try: say(*answer)
        except (TypeError, ValueError, RecursionError) as error: say("error", 0, type(error).__name__)
"""


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


@dataclass(frozen=True)
class Cases:
    """Function calls and their expected results; `Task.answer` of a programming task, as text."""

    function: str
    inputs: tuple[list[Any], ...]  # the arguments of each call
    outputs: tuple[Any, ...]
    solution: str = ""  # a program that is right

    def __str__(self) -> str:
        return json.dumps([self.function, self.inputs, self.outputs, self.solution])


def cases_of(task: Task) -> Cases:
    """The tests of a task."""
    match json.loads(task.answer or "null"):
        case [str(function), list(inputs), list(outputs), str(solution)] if len(inputs) == len(outputs) > 0:
            return Cases(function, tuple(inputs), tuple(outputs), solution)
    raise DataError(f"task {task.id} of {task.source} has no tests: it is no programming task")


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
        return judged(await self._ran(completion, cases.function, cases.inputs), cases.outputs)

    async def said(self, completion: str, function: str, inputs: Sequence[list[Any]]) -> list[str]:
        """What the program in a completion says to each input: lines as text, some missing where it ended before."""
        return (await self._ran(completion, function, inputs)).stdout.split("\n")[: len(inputs)]

    async def _ran(self, completion: str, function: str, inputs: Sequence[list[Any]]) -> Ran:
        asked = {"program": program_in(completion).text, "function": function, "inputs": inputs}
        if not self._sandboxes:
            self._sandboxes.append(PlainProcess() if self.isolation == "process" else PythonSandbox(at_once=_AT_ONCE))
        ran = await self._sandboxes[0].run(_DRIVER, json.dumps(asked), Allowance(self.seconds, _MEMORY, _OUTPUT))
        if ran.is_envs_fault:
            raise NoAnswer(f"the sandbox could not run the program: {ran.ending.value}: {ran.stderr[:_LONGEST_ERROR]}")
        return ran

    async def close(self) -> None:
        while self._sandboxes:
            await self._sandboxes.pop().close()

    def __getstate__(self) -> dict[str, Any]:
        return {"isolation": self.isolation, "seconds": self.seconds, "_sandboxes": []}


def judged(ran: Ran, outputs: Sequence[Any]) -> Trial:
    """Compare what was printed with what should have come, text with text: nothing of it is read but how it failed."""
    said = ran.stdout.split("\n")[: len(outputs)]
    wanted = [json.dumps(["value", output]) for output in outputs]
    passed = tuple(place < len(said) and said[place] == line for place, line in enumerate(wanted))
    if all(passed):
        return Trial(Finding.RIGHT, passed)
    if ran.ending in _ENDINGS:
        return Trial(_ENDINGS[ran.ending], passed)
    for line in said:
        match _read(line):
            case [("error" | "syntax") as kind, int(place), str(name)]:
                return Trial(Finding(kind), passed, max(place, 0), name)
    is_whole = len([line for line in said if line]) == len(outputs)
    return Trial(Finding.WRONG if is_whole else Finding.ERROR, passed)


def _read(line: str) -> Any:
    if not line.startswith(('["error', '["syntax')) or len(line) > _LONGEST_ERROR:
        return None
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
