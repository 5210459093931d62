"""A question with what others said about it behind: how roles of one rollout hear of each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strop.environments.format.think_tags import CLOSE, OPEN
from strop.text.sanitize import quoted
from strop.types import Message, Task


def told_by_others(task: Task, said: Sequence[str], asks: str = "{question} hint: {said}") -> tuple[Message, ...]:
    """The task's messages; the last one is asked as `asks` says, where anything was said."""
    words = " ".join(quoted(each.replace(OPEN, " ").replace(CLOSE, " ")).strip() for each in said)
    if not words:
        return task.messages
    *before, question = task.messages
    return (*before, replace(question, content=asks.format(question=question.content, said=words)))
