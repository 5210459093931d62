"""Python notebook tool in the sandbox: each cell sees what earlier cells defined, and returns what it prints.

Earlier cells are rerun silently each time: no interpreter that ran model output is reused for another rollout.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from strop.environments.code_execution import Isolation, Trials
from strop.environments.tools.tool import WrongCall
from strop.errors import ConfigurationError
from strop.roles import Instrument
from strop.sandbox.execution import Allowance, Ending, Ran
from strop.sandbox.python.python_pool import PythonSandbox
from strop.sandbox.python.unconfined_python import PlainProcess
from strop.workers.untrusted_answers import NoAnswer

if TYPE_CHECKING:
    from strop.run import Run

_AT_ONCE = 4  # programs side by side
_MEMORY, _OUTPUT = 128 << 20, 1 << 16  # bytes
_LONGEST = 20_000  # characters of all cells of a rollout
_SHOWN = 200  # characters of what went wrong
# the last cell shows the value of a last line that is an expression, as a notebook does
_DRIVER = """
import ast, contextlib, io, json, sys
*before, last = json.loads(sys.stdin.read())
space = {"__name__": "__main__"}
with contextlib.redirect_stdout(io.StringIO()):
    for cell in before: exec(compile(cell, "<cell>", "exec"), space)
try:
    tree = ast.parse(last, "<cell>")
    value = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), space)
    found = eval(compile(value, "<cell>", "eval"), space) if value else None
    if found is not None: print(repr(found))
except Exception as error:
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    sys.exit(1)
"""


@dataclass(frozen=True)
class Cells(Instrument):
    """Notebook tool, sandboxed, with `seconds` per call; a cell that fails or times out returns its error and defines
    nothing.
    """

    isolation: Isolation = "sandbox"  # process: what the model writes runs with the rights of the user
    seconds: float = 2.0  # of a cell and those before it
    _sandboxes: list[PythonSandbox | PlainProcess] = field(default_factory=list, init=False, repr=False, compare=False)
    _cells: list[str] = field(default_factory=list, init=False, repr=False, compare=False)

    name: ClassVar[str] = "python"
    description: ClassVar[str] = "Run Python code; what it prints is the answer, and what it defines stays."
    parameters: ClassVar[str] = json.dumps(
        {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
    )

    def __post_init__(self) -> None:
        if self.isolation not in ("sandbox", "process") or not self.seconds > 0:
            raise ConfigurationError(
                f"isolation is sandbox or process and seconds > 0, got {self.isolation!r}, {self.seconds:g}"
            )

    async def call(self, arguments: dict[str, Any]) -> str:
        cells = [*self._cells, arguments["code"]]
        if sum(map(len, cells)) > _LONGEST:
            raise WrongCall(f"more than {_LONGEST} characters of code in all cells")
        if not self._sandboxes:
            self._sandboxes.append(PlainProcess() if self.isolation == "process" else PythonSandbox(at_once=_AT_ONCE))
        ran = await self._sandboxes[0].run(_DRIVER, json.dumps(cells), Allowance(self.seconds, _MEMORY, _OUTPUT))
        if ran.is_envs_fault:
            raise NoAnswer(f"the sandbox could not run the code: {ran.ending.value}: {ran.stderr[:_SHOWN]}")
        if not ran.is_well:
            raise WrongCall(_trouble(ran))
        self._cells.append(arguments["code"])
        return ran.stdout.strip() or "ok"

    def own(self) -> Cells:
        """A rollout's own cells; the sandbox is shared."""
        mine = Cells(self.isolation, self.seconds)
        object.__setattr__(mine, "_sandboxes", self._sandboxes)
        return mine

    def begin(self, code: str) -> None:
        """A cell that is there before any other, and not run by itself."""
        self._cells.append(code)

    def problems(self, run: Run) -> list[str]:
        return Trials(self.isolation).problems(run)

    async def close(self) -> None:
        while self._sandboxes:
            await self._sandboxes.pop().close()

    def __getstate__(self) -> dict[str, Any]:
        return {"isolation": self.isolation, "seconds": self.seconds, "_sandboxes": [], "_cells": []}


def _trouble(ran: Ran) -> str:
    if ran.ending is not Ending.FINISHED:
        return f"the code ended by {ran.ending.value}"
    return ran.stderr.strip()[-_SHOWN:] or f"exit code {ran.code}"
