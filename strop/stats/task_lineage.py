"""Lineage of tasks generated during a run, and their form in a checkpoint.

A generated task keeps its parent's environment, level, tools and further messages, so that the parent's environment and
rewards serve it too. Its id marks it as generated and names the task of an environment that it derives from.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from strop.types import Message, Task, Tool, ToolCall

_WRITTEN = "~"  # in an id, between the first ancestor's and its own


def child(parent: Task, text: str, answer: str) -> Task:
    """A task that asks this in place of what its parent asks."""
    messages = list(parent.messages)
    place = next(number for number, message in enumerate(messages) if message.role == "user")
    messages[place] = replace(messages[place], content=text)
    made = replace(parent, messages=tuple(messages), answer=answer, id="")
    return replace(made, id=f"{ancestor(parent)}{_WRITTEN}{made.id}")


def is_written(task: Task) -> bool:
    """Whether no environment made it."""
    return _WRITTEN in task.id


def ancestor(task: Task) -> str:
    """The id of the task of an environment that it goes back to, perhaps through other written ones."""
    return task.id.partition(_WRITTEN)[0]


def plain(task: Task) -> dict[str, Any]:
    """A task as JSON data."""
    return asdict(task)


def unplain(data: dict[str, Any]) -> Task:
    """The inverse."""
    messages = tuple(
        Message(**each | {"tool_calls": tuple(ToolCall(**call) for call in each["tool_calls"])})
        for each in data["messages"]
    )
    tools = tuple(Tool(**tool) for tool in data["tools"])
    return Task(messages, data["answer"], data["source"], int(data["level"]), data["id"], tools)
