"""Programming tasks from a table with tests: programs run in the sandbox, and the share of passed tests is paid."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from strop.environments.code.cases import Cases, cases_of, has_tests
from strop.environments.code_execution import Isolation, Trials, program_in
from strop.environments.data.hf_dataset import dataset_rows
from strop.environments.data.rows import PLAN, task_of, text_in
from strop.environments.data.table import Table
from strop.environments.format.demonstrations import Demonstration
from strop.environments.single_turn import SingleCompletion
from strop.text.steps import Piece
from strop.types import Message, Observation, Task

_SECONDS = 10.0  # for all tests of a program, of which datasets have up to a hundred
_SHOWN = "\n\nYour code should pass this test:\n"


@dataclass(frozen=True)
class CodeTable(Table):
    """One programming task per row; a completion's last fenced program is run on the row's tests."""

    trials: Trials = field(default_factory=lambda: Trials(seconds=_SECONDS))

    @property
    def is_inline(self) -> bool:
        return False  # a check takes as long as a program may

    @property
    def pays(self) -> bool:
        return True

    @property
    def is_answered(self) -> bool:
        return True

    @property
    def chosen(self) -> tuple[str, str]:
        return "none", "its rows bring tests"

    def reads(self) -> str:
        cases = cases_of(self.task(0))
        count = f"{len(cases.inputs)} tests" if cases.inputs else "a check"
        return f"programs run on the tests of their row (the first has {count}) and earn the share passed"

    def episode(self) -> SingleCompletion:
        return ShownProgram(self) if self._is_worked else TestedProgram(self)

    def check(self, task: Task, completion: str) -> float:
        """In a sandbox of its own, for whoever cannot wait; episodes and rewards can, and are quicker."""
        return self.trials.alone(completion, cases_of(task)).share

    def answer(self, completion: str) -> str:
        return program_in(completion).text.strip()

    def solution(self, task: Task) -> str:
        """The row's right program, in a fence; empty where it has none."""
        program = cases_of(task).solution.strip("\n")
        return f"```python\n{program}\n```" if program.strip() else ""

    def demonstration(self, task: Task) -> Demonstration | None:
        """The row's program, of which each line is a step."""
        text, found, start = self.solution(task), list[Piece](), 0
        if not text:
            return None
        for line in text.split("\n"):
            found += [Piece(start, start + len(line))] if line.strip() and not line.startswith("```") else []
            start += len(line) + 1
        return Demonstration(text, "", text_in(task, PLAN), text, tuple(found))

    def _task(self, row: Any) -> Task:
        """A row as a task whose prompt names the function that the tests call."""
        prompt = self.prompt_column or ("text" if "text" in row and "test_list" in row else "")
        task = task_of(row, self.name, prompt, answers=())
        cases = cases_of(task)
        *before, last = task.messages
        asked = replace(last, content=last.content + _missing_from(last.content, cases, row))
        return Task((*before, asked), "", task.source, task.level, tools=task.tools, columns=task.columns)

    def _lacks(self, row: Any) -> str:
        return ""  # its tests stand for an answer

    @cached_property
    def _is_worked(self) -> bool:
        return any(cases_of(task).solution for task in self._tasks.train)


@dataclass
class TestedProgram(SingleCompletion):
    """Episode of one completion, whose program runs beside others; a sandbox that fails is no verdict."""

    env: CodeTable

    async def step(self, completion: Message) -> Observation:
        trial = await self.env.trials.of(completion.content, cases_of(self.task))
        return Observation(done=True, reward=trial.share)


@dataclass
class ShownProgram(TestedProgram):
    """Episode that demonstrates the row's own program."""

    def demonstrate(self) -> Message:
        return Message("assistant", self.env.solution(self.task))


def code_table(table: Table, isolation: Isolation) -> Table:
    """The table, as one of programming tasks where its first row brings tests and no rule for answers is asked for."""
    path = Path(table.path)
    first = next(dataset_rows(path, table.split), None) if table.rule == "auto" and path.exists() else None
    if first is None or not isinstance(first[1], Mapping) or not has_tests(first[1]):
        return table
    given = {each.name: getattr(table, each.name) for each in fields(Table)}
    return CodeTable(**given, trials=Trials(isolation, _SECONDS))


def _missing_from(prompt: str, cases: Cases, row: Mapping[str, Any]) -> str:
    """What a prompt must say beside the task: where the program starts, or what is called."""
    starter = row.get("starter_code")
    if isinstance(starter, str) and starter.strip() and starter.strip() not in prompt:
        return f"\n\nStart from this code:\n{starter.strip()}"
    is_named = re.search(rf"\b{re.escape(cases.function)}\s*\(|`{re.escape(cases.function)}`", prompt)
    if not cases.function or is_named:
        return ""
    if cases.form == "expression":
        return f"{_SHOWN}assert {cases.inputs[0]} == {cases.outputs[0]!r}"
    return f"\n\nWrite a function `{cases.function}`."
