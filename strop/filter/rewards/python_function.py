"""Reward from a user's Python function in a file: `def reward(completion, answer): return 0.5`, or TRL's signature."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from strop.environments.data.answer_extraction import gold
from strop.errors import ConfigurationError
from strop.filter.function_signature import group_arguments, is_of_group, numbers, rollout_arguments
from strop.roles import Reward
from strop.storage.own_functions import loaded, parsed
from strop.types import FilePath, Group, ScoreRange, Task

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class PythonFunction(Reward):
    """Call of `path` ("file.py:function") with arguments by parameter name, once per rollout or once per group.

    A per-rollout function may name `prompt`, `completion`, `answer` (as its table reads it), `full_answer` (as the row
    has it), `messages` (the whole conversation) and any column of the task's row; a per-group function is TRL's:
    `fn(prompts, completions, **columns) -> list[float]`, with columns as the row has them. Printed output is discarded.
    Its process has no API keys in its environment variables: read a needed key from a file.
    `function.low = -1` and `function.high = 1` below it state the scores of a wrong and of a right rollout.
    """

    path: FilePath  # FILE.py:FUNCTION
    weight: float = 1.0
    grades: ScoreRange | None = None  # scores of a wrong and a right rollout; None: those that the file states
    rules: tuple[tuple[str, str], ...] = ()  # by environment, the rule by which its answers are read

    def __post_init__(self) -> None:
        file, colon, function = self.path.rpartition(":")
        if not colon or not function.isidentifier():
            raise ConfigurationError(f'PythonFunction needs path="file.py:function", got {self.path!r}')
        if not Path(file).is_file():
            raise ConfigurationError(f"PythonFunction: there is no file {file} (of path={self.path!r})")
        tree = parsed(Path(file), function)
        if self.grades is None:
            object.__setattr__(self, "grades", _stated(tree, function))

    @property
    def name(self) -> str:
        return self.path.rpartition(":")[2]

    @property
    def place(self) -> str:
        """File and line of the function."""
        file = Path(self.path.rpartition(":")[0])
        defined = [each for each in ast.walk(parsed(file, self.name)) if isinstance(each, _DEFINITIONS)]
        lines = [each.lineno for each in defined if each.name == self.name]
        return f"{file.name}, line {lines[0]}" if lines else file.name

    def answer(self, task: Task) -> str:
        """A task's answer as its environment reads it."""
        rule = dict(self.rules).get(task.source)
        return gold(rule, task.answer) if rule else task.answer

    def open_resources(self) -> None:
        """Run the file now, so that its imports are on no rollout's clock."""
        self._function  # noqa: B018

    def __call__(self, group: Group) -> Sequence[Any] | Awaitable[Sequence[Any]]:
        parameters = inspect.signature(self._function).parameters
        if is_of_group(parameters):
            scores: Sequence[Any] | Awaitable[Sequence[Any]] = numbers(
                self._function(**group_arguments(group, parameters))
            )
            return scores
        answer = self.answer(group.task)
        return [self._function(**rollout_arguments(rollout, answer, parameters)) for rollout in group.rollouts]

    def __getstate__(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "weight": self.weight,
            "grades": self.grades,
            "rules": self.rules,
        }  # the loaded function stays in its process

    @cached_property
    def _function(self) -> Callable[..., Any]:
        return loaded(self.path)


def _stated(tree: ast.Module, function: str) -> ScoreRange | None:
    """The range of scores that a file states for its function, read without running it."""
    stated = {}
    for each in tree.body:
        match each:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=name), attr="low" | "high" as end)], value=value):
                if name == function:
                    stated[end] = _number(value, f"{function}.{end}")
    if not stated:
        return None
    if stated.keys() != {"low", "high"} or not 0 < abs(stated["low"] - stated["high"]) < math.inf:
        raise ConfigurationError(f"{function} needs both {function}.low and {function}.high, finite and different")
    return ScoreRange(stated["low"], stated["high"])


def _number(value: ast.expr, name: str) -> float:
    try:
        return float(ast.literal_eval(value))
    except (ValueError, TypeError, OverflowError, MemoryError, RecursionError):
        raise ConfigurationError(f"{name} must be a number, got {ast.unparse(value)}") from None
