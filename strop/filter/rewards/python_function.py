"""A reward that somebody wrote as a plain function in a file: `def reward(reply, answer): return 0.5`, or TRL's."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from strop.errors import ConfigurationError, nearest
from strop.filter.calling import attempt_arguments, group_arguments, is_of_group, numbers
from strop.roles import Reward
from strop.types import FilePath, Group


@dataclass(frozen=True)
class PythonFunction(Reward):
    """Calls `path` ("file.py:function") with what its parameters name, once per attempt or once per group.

    One of an attempt may name `prompt`, `reply`, `answer`, `messages` (the whole conversation) and any column of the
    task's row; one of a group is TRL's: `fn(prompts, completions, **columns) -> list[float]`.
    What it prints is lost, and its process sees no keys of the environment: one that needs a key reads it from a file.
    """

    path: FilePath  # FILE.py:FUNCTION
    weight: float = 1.0

    def __post_init__(self) -> None:
        file, colon, function = self.path.rpartition(":")
        if not colon or not function.isidentifier():
            raise ConfigurationError(f'PythonFunction needs path="file.py:function", got {self.path!r}')
        if not Path(file).is_file():
            raise ConfigurationError(f"PythonFunction: there is no file {file} (of path={self.path!r})")

    @property
    def name(self) -> str:
        return self.path.rpartition(":")[2]

    def open(self) -> None:
        """Run the file now, so that its imports are on no attempt's clock."""
        self._function  # noqa: B018

    def __call__(self, group: Group) -> Sequence[Any] | Awaitable[Sequence[Any]]:
        parameters = inspect.signature(self._function).parameters
        if is_of_group(parameters):
            marks: Sequence[Any] | Awaitable[Sequence[Any]] = numbers(
                self._function(**group_arguments(group, parameters))
            )
            return marks
        return [self._function(**attempt_arguments(attempt, parameters)) for attempt in group.trajectories]

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "weight": self.weight}  # the loaded function stays in its process

    @cached_property
    def _function(self) -> Callable[..., Any]:
        members = vars(_module(Path(self.path.rpartition(":")[0])))
        if not callable(members.get(self.name)):
            hint = nearest(self.name, [name for name in members if not name.startswith("_")])
            raise ConfigurationError(f"{self.path}: the file has no function {self.name}; {hint}")
        function: Callable[..., Any] = members[self.name]
        return function


def _module(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"strop_reward_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"PythonFunction needs a Python file (*.py), got {file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module
