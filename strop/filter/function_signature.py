"""Signature of a user's reward function: arguments by parameter name, in strop's form or in TRL's."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Mapping
from typing import Any

from strop.environments.data.rows import columns_of
from strop.errors import nearest
from strop.types import Group, Message, Rollout

_OF_GROUP = "completions"  # a function with this parameter is TRL's: one call for all rollouts, a list comes back


def is_of_group(parameters: Mapping[str, inspect.Parameter]) -> bool:
    """Whether a function is asked about a whole group at once, as TRL's are."""
    return _OF_GROUP in parameters


def rollout_arguments(rollout: Rollout, answer: str, parameters: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    """What one rollout has to offer; `answer` is the task's as its environment reads it."""
    task = rollout.task
    offered = columns_of(task) | {
        "prompt": "\n".join(message.content for message in task.messages),
        "completion": rollout.completion,
        "answer": answer,
        "full_answer": task.answer,
        "messages": conversation(rollout),
    }
    return _named(offered, parameters)


def group_arguments(group: Group, parameters: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    """TRL's: lists with an entry for each rollout. Chats stay chats where the task is more than one text of a user."""
    rollouts = group.rollouts
    rows = [{"answer": rollout.task.answer} | columns_of(rollout.task) for rollout in rollouts]
    offered: dict[str, Any] = {name: [row.get(name) for row in rows] for name in (rows[0] if rows else {})}
    is_chat = any(_is_chat(rollout) for rollout in rollouts)
    offered["prompts"] = [_asked(rollout, is_chat) for rollout in rollouts]
    offered[_OF_GROUP] = [_said(rollout, is_chat) for rollout in rollouts]
    offered["completion_ids"] = [[int(token) for turn in t.turns for token in turn.tokens] for t in rollouts]
    return _named(offered, parameters)


def numbers(returned: Any) -> Any:
    """None, by which TRL's functions say that a rollout is none of theirs, adds nothing; all else is judged later."""
    if isinstance(returned, Awaitable):
        return _awaited(returned)
    if isinstance(returned, list | tuple):
        return [0.0 if value is None else value for value in returned]
    return returned


async def _awaited(returned: Awaitable[Any]) -> Any:
    return numbers(await returned)


def conversation(rollout: Rollout) -> list[dict[str, Any]]:
    """Everything that was said, the task's messages first."""
    said = [*rollout.task.messages]
    for turn in rollout.turns:
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


def _is_chat(rollout: Rollout) -> bool:
    """Rows of text alone are told as text; a chat in the prompt, or a talk of several turns, as messages."""
    messages = rollout.task.messages
    is_plain = len(messages) == 1 and messages[0].role == "user" and "prompt" not in columns_of(rollout.task)
    return not is_plain or len(rollout.turns) > 1


def _asked(rollout: Rollout, is_chat: bool) -> str | list[dict[str, Any]]:
    messages = rollout.task.messages
    return [_plain(message) for message in messages] if is_chat else messages[0].content


def _said(rollout: Rollout, is_chat: bool) -> str | list[dict[str, Any]]:
    return conversation(rollout)[len(rollout.task.messages) :] if is_chat else rollout.completion


def _plain(message: Message) -> dict[str, Any]:
    calls = [{"name": call.name, "arguments": call.arguments} for call in message.tool_calls]
    return {"role": message.role, "content": message.content} | ({"tool_calls": calls} if calls else {})
