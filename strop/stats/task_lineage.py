"""Lineage of tasks generated during a run, and their form in a checkpoint.

A generated task is a row of its own: it has its parent's environment, level, tools and system message, so that the
environment serves it too, and nothing of what the parent asks, answers or brings in columns. Its id marks it as
generated and names the task of an environment that it derives from.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

from strop.types import Message, Picture, Task, Tool, ToolCall

_COMPLETIONS = ("completion", "chosen", "rejected")  # columns that hold what somebody wrote
_WRITTEN = "~"  # in an id, between the first ancestor's and its own


def child(parent: Task, text: str, answer: str) -> Task:
    """A task that asks this in place of what its parent asks."""
    before = (message for message in parent.messages if message.role == "system")
    columns = _answer_columns(parent, answer)
    made = replace(parent, messages=(*before, Message("user", text)), answer=answer, columns=columns, id="")
    return replace(made, id=f"{ancestor(parent)}{_WRITTEN}{made.id}")


def _answer_columns(parent: Task, answer: str) -> str:
    """The columns from which the parent's answer came, with this one, for rewards that read them by name."""
    brought: dict[str, Any] = json.loads(parent.columns) if parent.columns else {}
    names = [name for name, value in brought.items() if str(value) == parent.answer and name not in _COMPLETIONS]
    return json.dumps(dict.fromkeys(sorted(names), answer)) if names else ""


def is_written(task: Task) -> bool:
    """Whether no environment made it."""
    return _WRITTEN in task.id


def ancestor(task: Task) -> str:
    """The id of the task of an environment that it goes back to, perhaps through other written ones."""
    return task.id.partition(_WRITTEN)[0]


def plain(task: Task) -> dict[str, Any]:
    """A task as JSON data; pictures by their names, their bytes lie in the run folder."""
    told = asdict(task)
    for picture in (picture for message in told["messages"] for picture in message["images"]):
        del picture["data"]
    return told


def unplain(data: dict[str, Any]) -> Task:
    """The inverse."""
    messages = tuple(
        Message(
            **each
            | {"tool_calls": tuple(ToolCall(**call) for call in each["tool_calls"])}
            | {"images": tuple(Picture(**picture) for picture in each.get("images", ()))}
        )
        for each in data["messages"]
    )
    tools = tuple(Tool(**tool) for tool in data["tools"])
    return Task(
        messages, data["answer"], data["source"], int(data["level"]), data["id"], tools, data.get("columns", "")
    )
