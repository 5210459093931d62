"""A row of a table as a task: which column asks, which one answers, chats as chats; other columns are left alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from strop.errors import nearest
from strop.types import Message, Task

PROMPTS = ("prompt", "messages", "question", "problem")
ANSWERS = ("answer", "solution", "ground_truth", "reward_model")  # the last holds `ground_truth` within
_ROLES = ("system", "user", "assistant", "tool")
_LONGEST = 200  # letters of a row in an error


def task_of(row: Any, source: str, prompt: str = "", answer: str = "") -> Task:
    """ValueError says what is wrong with the row; `prompt` and `answer` name columns, empty: the usual ones."""
    if not isinstance(row, Mapping):
        raise ValueError(f'need an object like {{"prompt": "2+2=?", "answer": "4"}}, got {type(row).__name__}')
    if not prompt and "prompt" in row and "messages" in row:
        raise ValueError("need either `prompt` or `messages`, not both")
    asked, answered = _column(row, prompt, PROMPTS), _column(row, answer, ANSWERS)
    level = row.get("level", 0)
    is_level = isinstance(level, int) and not isinstance(level, bool)  # else a column of somebody's own
    return Task(_messages(row[asked], asked), _answer(row[answered], answered), source, level if is_level else 0)


def _column(row: Mapping[str, Any], named: str, usual: tuple[str, ...]) -> str:
    if named:
        if named not in row:
            raise ValueError(f"there is no column {named!r}; {nearest(named, list(row))}")
        return named
    found = [name for name in usual if name in row]
    if not found:
        raise ValueError(f"`{usual[0]}` is missing ({_also(usual)} will do); there is {', '.join(map(repr, row))}")
    return found[0]


def _also(usual: tuple[str, ...]) -> str:
    return ", ".join(usual[1:-1]) + f" or {usual[-1]}"


def _messages(asked: Any, column: str) -> tuple[Message, ...]:
    """A text is what the user says; a list is a chat, as TRL and verl keep it."""
    if isinstance(asked, str):
        return (Message("user", asked),)
    if not isinstance(asked, list | tuple):
        raise ValueError(f"`{column}` must be text or a list of messages, got {asked!r}"[:_LONGEST])
    if not asked:
        raise ValueError(f'`{column}` must be a list of {{"role": ..., "content": ...}} with at least one entry')
    messages = tuple(_message(entry) for entry in asked)
    if messages[-1].role == "assistant":
        raise ValueError(f"`{column}` ends with what the assistant said, and the policy is to write the next reply")
    return messages


def _message(entry: Any) -> Message:
    if not isinstance(entry, Mapping) or entry.get("role") not in _ROLES:
        raise ValueError(f"a message needs a `role` of {', '.join(_ROLES)} and a `content`, got {entry!r}"[:_LONGEST])
    if not isinstance(entry.get("content"), str):
        raise ValueError(f"the `content` of a message must be text, got {entry.get('content')!r}"[:_LONGEST])
    return Message(entry["role"], entry["content"])


def _answer(answer: Any, column: str) -> str:
    if column == "reward_model" and isinstance(answer, Mapping):  # verl's
        answer, column = answer.get("ground_truth"), "reward_model.ground_truth"
    if isinstance(answer, bool) or not isinstance(answer, str | int | float):
        raise ValueError(f"`{column}` must be text or a number, got {answer!r}"[:_LONGEST])
    return str(answer)
