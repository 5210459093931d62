"""Tasks from a JSONL file: `{"prompt": "2+2=?", "answer": "4"}` per line; also `messages` for `prompt`, and `level`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from strop.environments.fixed import FixedTasks
from strop.environments.scratchpad import final_answer
from strop.environments.single_turn import SingleTurn
from strop.errors import DataError, nearest
from strop.roles import World
from strop.types import Message, Task

_FIELDS = ("prompt", "messages", "answer", "level")
_ROLES = ("system", "user", "assistant", "tool")


@dataclass(frozen=True)
class Jsonl(World):
    """One task per line, right when the reply's final answer is the line's answer."""

    path: str
    heldout_share: float = 0.1

    is_inline: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return Path(self.path).stem

    @property
    def level(self) -> int:
        return 0

    def task(self, index: int, heldout: bool = False) -> Task:
        return self._tasks.task(index, heldout)

    def num_tasks(self, heldout: bool = False) -> int:
        return self._tasks.num_tasks(heldout)

    def environment(self) -> SingleTurn:
        return SingleTurn(self)

    def check(self, task: Task, reply: str) -> float:
        return float(final_answer(reply) == task.answer.strip())

    def solution(self, task: Task) -> str:
        return task.answer

    def __getstate__(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "heldout_share": self.heldout_share,
        }  # the tasks are read again where they are needed

    @cached_property
    def _tasks(self) -> FixedTasks:
        return FixedTasks.split(read_tasks(Path(self.path), self.name), self.heldout_share, self.path)


def read_tasks(path: Path, source: str) -> list[Task]:
    """All tasks of a file; the first line that is wrong is named, with what is wrong."""
    if not path.is_file():
        raise DataError(f"{path} does not exist")
    tasks = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            if line.strip():
                tasks.append(_task(json.loads(line.decode("utf-8")), source))
        except ValueError as error:
            raise DataError(f"{path}:{number}: {error}") from None
    return tasks


def _task(row: Any, source: str) -> Task:
    if not isinstance(row, dict):
        raise ValueError(f'need an object like {{"prompt": "2+2=?", "answer": "4"}}, got {type(row).__name__}')
    unknown = [field for field in row if field not in _FIELDS]
    if unknown:
        raise ValueError(f"unknown field {unknown[0]!r}; {nearest(unknown[0], _FIELDS)}")
    level = row.get("level", 0)
    if not isinstance(level, int) or isinstance(level, bool):
        raise ValueError(f"`level` must be a whole number, got {level!r}")
    return Task(_messages(row), _text(row, "answer"), source, level)


def _messages(row: dict[str, Any]) -> tuple[Message, ...]:
    if ("prompt" in row) == ("messages" in row):
        raise ValueError("need either `prompt` or `messages`" + (", not both" if "prompt" in row else ""))
    if "prompt" in row:
        return (Message("user", _text(row, "prompt")),)
    if not isinstance(row["messages"], list) or not row["messages"]:
        raise ValueError('`messages` must be a list of {"role": ..., "content": ...} with at least one entry')
    return tuple(_message(entry) for entry in row["messages"])


def _message(entry: Any) -> Message:
    if not isinstance(entry, dict) or entry.get("role") not in _ROLES:
        raise ValueError(f"a message needs a `role` of {', '.join(_ROLES)} and a `content`, got {entry!r}"[:200])
    return Message(entry["role"], _text(entry, "content"))


def _text(row: dict[str, Any], field: str) -> str:
    if not isinstance(row.get(field), str):
        raise ValueError(f"`{field}` must be text, got {row[field]!r}" if field in row else f"`{field}` is missing")
    text: str = row[field]
    return text
