"""Tasks from a table: a JSONL or JSON file, or a Hugging Face dataset (Parquet, CSV, or a saved folder)."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from strop.environments.data import answer_extraction
from strop.environments.data.finite_set import FixedTasks
from strop.environments.data.hf_dataset import dataset_rows, has_split, title_of
from strop.environments.data.rows import (
    ANSWERS,
    CHOSEN,
    COMPLETION,
    HINT,
    PLAN,
    columns_of,
    missing_answer,
    ranked_by,
    task_of,
    text_in,
    worked_text,
)
from strop.environments.format.demonstrations import Demonstration, demonstration
from strop.environments.single_turn import SingleCompletion, SingleTurn
from strop.errors import ConfigurationError, DataError, nearest
from strop.roles import Environment
from strop.types import FilePath, Message, Task

_UNNAMED = re.compile(r"[^\w.-]+")  # what no name holds
CATEGORIES, _MOST_CATEGORIES = ("category", "subject", "level", "difficulty"), 64
_SCENARIO = "scenario"
_PREFERRED = (
    "each row only prefers one completion to another, which is no answer to compare with: add a column `answer`"
)
_SHOWN = 60  # characters of an answer in a sentence


@dataclass(frozen=True)
class Table(Environment):
    """One task per row; a completion is right if the answer extracted by `rule` matches the row's
    (`answer_extraction.py`).
    """

    path: FilePath
    rule: str = "auto"
    prompt_column: str = ""  # empty: the first of prompt, messages, question, problem
    answer_column: str = ""  # empty: the first of answer, solution, ground_truth, reward_model
    split: str = "train"  # of a dataset
    heldout_split: str = "test"  # of a dataset, to measure on; where it has none, a share of `split`
    heldout_share: float = 0.1
    part: tuple[str, str] = ("", "")  # column and value of the rows that are taken; empty: all rows
    system: str = ""  # system message before every prompt that has none
    title: str = ""  # empty: of the file, folder or dataset; set where two tables of a run share theirs

    def __post_init__(self) -> None:
        if self.rule not in answer_extraction.RULES:
            raise ConfigurationError(
                f"there is no rule {self.rule!r} for answers: {nearest(self.rule, answer_extraction.RULES)}"
            )

    @property
    def name(self) -> str:
        named = self.title or title_of(Path(self.path))
        return f"{named}-{_UNNAMED.sub('_', self.part[1])}" if self.part[0] else named

    @property
    def level(self) -> int:
        return 0

    @property
    def is_inline(self) -> bool:
        """Mathematics is read by a package that is not ours, so not in this process."""
        return self.chosen[0] != "math"

    @property
    def pays(self) -> bool:
        return self.is_inline and self.is_answered

    @property
    def is_answered(self) -> bool:
        """Whether its rows have answers; without, rewards of another kind must judge completions."""
        return self.chosen[0] != "none" and not self._read[1]

    def task(self, index: int, heldout: bool = False) -> Task:
        task = self._tasks.task(index, heldout)
        if not self.system or task.messages[0].role == "system":
            return task
        return replace(task, messages=(Message("system", self.system), *task.messages))  # under the same id

    def num_tasks(self, heldout: bool = False) -> int:
        return self._tasks.num_tasks(heldout)

    def episode(self) -> SingleCompletion:
        return SingleTurn(self, self.pays) if self._is_worked else SingleCompletion(self, self.pays)

    def check(self, task: Task, completion: str) -> float:
        if not self.is_answered:
            raise DataError(f"{self.path} has nothing to check completions by: {self.chosen[1]}")
        return float(answer_extraction.is_right(self.chosen[0], completion, task.answer))

    def answer(self, completion: str) -> str:
        """What a completion answers; where no rule says, what prose calls its answer."""
        rule = self.chosen[0]
        return demonstration(completion).answer if rule == "none" else answer_extraction.spelled(rule, completion)

    def solution(self, task: Task) -> str:
        """The completion or worked solution that a row brings, ended as its rule asks; or one that gives its answer."""
        rule, text = self.chosen[0], worked_text(task)
        if not text:
            return answer_extraction.solution(rule, task.answer)
        is_completion = text in (columns_of(task).get(COMPLETION), columns_of(task).get(CHOSEN))
        return text if is_completion else answer_extraction.with_answer(rule, text, task.answer)

    def demonstration(self, task: Task) -> Demonstration | None:
        """The worked text of a row, taken apart; None where it has none."""
        text = worked_text(task)
        answer = "" if text == task.answer else answer_extraction.gold(self.chosen[0], task.answer)
        return demonstration(text, answer, text_in(task, PLAN)) if text else None

    def hint(self, task: Task, steps: int = 1) -> str:
        """The first steps of the column `hint`, or of the worked text."""
        if text := text_in(task, HINT):
            return demonstration(text).hint(steps) or text
        worked = self.demonstration(task)
        return worked.hint(steps) if worked else ""

    def reads(self) -> str:
        """How answers are read, why so, and an example, in words."""
        (rule, why), answer = self.chosen, self.task(0).answer
        shown = answer if len(answer) <= _SHOWN else f"... {answer[-_SHOWN:]}"
        example = f"; the answer {shown!r} is read as {answer_extraction.gold(rule, answer)!r}" if answer else ""
        return f"answer={rule} ({why}): {answer_extraction.MEANINGS[rule]}{example}"

    @cached_property
    def chosen(self) -> tuple[str, str]:
        """The rule by which answers are found, and why it was taken."""
        if self.rule != "auto":
            return self.rule, "as asked for" + ("; no row has an answer" if self._read[1] else "")
        if self._read[1]:
            return "none", self._read[1]
        rule, why = answer_extraction.chosen_rule([task.answer for task in self._read[0]])
        if rule == "text" and not self.answer_column and all(map(_is_preferred, self._read[0])):
            return "none", _PREFERRED
        return rule, why

    def by_category(self) -> tuple[Table, ...]:
        """A table for each value of the first column of categories that has several; else this one alone."""
        rows = [columns_of(task) for task in (*self._tasks.train, *self._tasks.heldout)]
        for column in CATEGORIES:
            values = sorted({str(row[column]) for row in rows if column in row})
            if 2 <= len(values) <= _MOST_CATEGORIES and all(column in row for row in rows):
                return tuple(replace(self, part=(column, value)) for value in values)
        return (self,)

    def relative(self, task: Task, key: int) -> Task:
        """Another row of the same side and scenario: with the same value in the first column that says one."""
        sides = [side for side in (self._tasks.train, self._tasks.heldout) if any(each.id == task.id for each in side)]
        row = columns_of(task)
        column = next((name for name in (_SCENARIO, *CATEGORIES) if name in row), "")
        found = [
            each
            for each in (sides[0] if sides and column else ())
            if each.id != task.id and columns_of(each).get(column) == row[column]
        ]
        if not found:
            raise ConfigurationError(f"{self.path}: no other row has {column or _SCENARIO}={row.get(column)!r}")
        return found[key % len(found)]

    @property
    def prompts(self) -> tuple[int, int]:
        """Rows, and the different prompts that they hold."""
        rows = self._read[0]
        return len(rows), len({task.messages for task in rows})

    def leave_out(self, ids: frozenset[str]) -> None:
        """Serve these no more."""
        vars(self)["_tasks"] = self._tasks.without(ids)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # rows are read again where needed

    @cached_property
    def _is_worked(self) -> bool:
        """Whether any row shows more than its answer."""
        return any(worked_text(task) for task in self._tasks.train)

    @cached_property
    def _tasks(self) -> FixedTasks:
        if has_split(Path(self.path), self.heldout_split) and self.heldout_split != self.split:
            return FixedTasks.apart(self._read[0], self._rows(self.heldout_split)[0], self.path)
        return FixedTasks.split(self._read[0], self.heldout_share, self.path)

    @cached_property
    def _read(self) -> tuple[list[Task], str]:
        return self._rows(self.split)

    def _rows(self, split: str) -> tuple[list[Task], str]:
        """Tasks of a split, and what is said where none of them has an answer; some without are an error."""
        path = Path(self.path)
        if not path.exists():
            raise DataError(f"{path} does not exist")
        tasks, missing = list[Task](), list[str]()
        for place, row in dataset_rows(path, split):
            if self.part[0] and str(row.get(self.part[0])) != self.part[1]:
                continue
            try:
                tasks.append(self._task(row))
                if said := self._lacks(row):
                    missing.append(f"{place}: {said}")
            except (ValueError, DataError) as error:
                raise DataError(f"{place}: {error}") from None
        if 0 < len(missing) < len(tasks):
            raise DataError(missing[0])
        return tasks, missing[0] if missing else ""

    def _task(self, row: Any) -> Task:
        beside = Path(self.path) if Path(self.path).is_dir() else Path(self.path).parent
        return task_of(row, self.name, self.prompt_column, self.answer_column, folder=beside)

    def _lacks(self, row: Any) -> str:
        """What is said of a row without an answer, where there should be one."""
        return "" if self.rule == "none" else missing_answer(row, self.answer_column)


def _is_preferred(task: Task) -> bool:
    """Whether what stands for the answer is the completion that a row prefers to others."""
    return bool(ranked_by(task)) and not {*ANSWERS, COMPLETION} & columns_of(task).keys()
