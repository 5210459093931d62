"""What a reward function of somebody's own is called with: by the names of its parameters, in our form or in TRL's."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Mapping
from typing import Any

from strop.environments.data.rows import columns_of
from strop.errors import nearest
from strop.types import Group, Message, Trajectory

_OF_GROUP = "completions"  # a function with this parameter is TRL's: one call for all attempts, a list comes back


def is_of_group(parameters: Mapping[str, inspect.Parameter]) -> bool:
    """Whether a function is asked about a whole group at once, as TRL's are."""
    return _OF_GROUP in parameters


def attempt_arguments(attempt: Trajectory, parameters: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    """What one attempt has to offer."""
    task = attempt.task
    offered = columns_of(task) | {
        "prompt": "\n".join(message.content for message in task.messages),
        "reply": attempt.reply,
        "answer": task.answer,
        "messages": conversation(attempt),
    }
    return _named(offered, parameters)


def group_arguments(group: Group, parameters: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    """TRL's: lists with an entry for each attempt. Chats stay chats where the task is more than one text of a user."""
    attempts = group.trajectories
    rows = [{"answer": attempt.task.answer} | columns_of(attempt.task) for attempt in attempts]
    offered: dict[str, Any] = {name: [row.get(name) for row in rows] for name in (rows[0] if rows else {})}
    is_chat = any(_is_chat(attempt) for attempt in attempts)
    offered["prompts"] = [_asked(attempt, is_chat) for attempt in attempts]
    offered[_OF_GROUP] = [_said(attempt, is_chat) for attempt in attempts]
    offered["completion_ids"] = [[int(token) for turn in t.turns for token in turn.tokens] for t in attempts]
    return _named(offered, parameters)


def numbers(returned: Any) -> Any:
    """None, by which TRL's functions say that an attempt is none of theirs, adds nothing; all else is judged later."""
    if isinstance(returned, Awaitable):
        return _awaited(returned)
    if isinstance(returned, list | tuple):
        return [0.0 if value is None else value for value in returned]
    return returned


async def _awaited(returned: Awaitable[Any]) -> Any:
    return numbers(await returned)


def conversation(attempt: Trajectory) -> list[dict[str, Any]]:
    """Everything that was said, the task's messages first."""
    said = [*attempt.task.messages]
    for turn in attempt.turns:
        said += [*turn.told, turn.message]
    return [_plain(message) for message in said]


def _named(offered: Mapping[str, Any], parameters: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    """Those that the function names; all of them where it takes whatever there is."""
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return dict(offered)
    wanted = [name for name, each in parameters.items() if name in offered or each.default is inspect.Parameter.empty]
    for name in wanted:
        if name not in offered:
            raise TypeError(f"the function asks for {name!r}, and there is no such column: {nearest(name, offered)}")
    return {name: offered[name] for name in wanted}


def _is_chat(attempt: Trajectory) -> bool:
    """Rows of text alone are told as text; a chat in the prompt, or a talk of several turns, as messages."""
    messages = attempt.task.messages
    is_plain = len(messages) == 1 and messages[0].role == "user" and "prompt" not in columns_of(attempt.task)
    return not is_plain or len(attempt.turns) > 1


def _asked(attempt: Trajectory, is_chat: bool) -> str | list[dict[str, Any]]:
    messages = attempt.task.messages
    return [_plain(message) for message in messages] if is_chat else messages[0].content


def _said(attempt: Trajectory, is_chat: bool) -> str | list[dict[str, Any]]:
    return conversation(attempt)[len(attempt.task.messages) :] if is_chat else attempt.reply


def _plain(message: Message) -> dict[str, Any]:
    calls = [{"name": call.name, "arguments": call.arguments} for call in message.tool_calls]
    return {"role": message.role, "content": message.content} | ({"tool_calls": calls} if calls else {})
