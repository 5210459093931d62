"""A task with a word before its question, which says how to go about it."""

from __future__ import annotations

from dataclasses import replace

from strop.types import Message, Task


def worded(task: Task, word: str) -> tuple[Message, ...]:
    """Its messages, as the bundled model has seen such words."""
    *before, last = task.messages
    return (*before, replace(last, content=f"{word}: {last.content}"))
