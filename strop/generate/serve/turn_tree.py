"""Matching of API requests to earlier turns: a tree of messages and completions per rollout.

A client sends the whole conversation each time, and few send it back unchanged. A completion is recognized by the ids
that it was given, which clients echo, then by its text and tool calls; everything else must be equal. On a match the
sampled tokens stay in the context, whatever the client made of their text. Without a match a new context is opened:
nothing is guessed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from strop.generate.conversation import Talk
from strop.generate.serve.ask_requests import Said, ServedCompletion, names_in
from strop.types import Message, Tool, ToolCall

Plain: TypeAlias = tuple[Any, ...]


def plain(message: Message) -> Plain:
    """A message as it is compared: white space at its ends and the spelling of arguments do not count."""
    calls = tuple((call.name, _arguments(call)) for call in message.tool_calls)
    return message.role, message.content.strip(), calls


def _arguments(call: ToolCall) -> str:
    try:
        return json.dumps(json.loads(call.arguments), sort_keys=True)
    except ValueError:
        return call.arguments


@dataclass(eq=False)
class Answered:
    """Completion, and the messages that followed it."""

    talk: Talk | None = None  # None: nothing was replied yet
    number: int = 0  # of its turn in `talk`
    name: str = ""
    said: Plain = ()  # the completion
    below: dict[tuple[Plain, ...], list[Answered]] = field(default_factory=dict)

    def is_meant(self, said: Said) -> bool:
        names = names_in(said.ids)
        return self.name in names if names else plain(said.message) == self.said


@dataclass(frozen=True)
class Place:
    """Position of a request: its new messages, after a node or, with None, in a new context."""

    node: Answered | None
    unheard: tuple[Message, ...]
    repaired: int = 0  # completions that came back in other words, and are known by their ids


@dataclass(eq=False)
class Histories:
    """Message trees of one rollout's contexts."""

    _roots: dict[Plain, Answered] = field(default_factory=dict)  # by the tools that were offered
    _names: dict[str, Answered] = field(default_factory=dict)

    def find(self, said: Sequence[Said], tools: Sequence[Tool], after: str = "") -> Place:
        """Where these messages go on; `after` is the id of a completion that they follow."""
        if after:
            (name,) = names_in([after]) or [""]
            return Place(self._names.get(name), tuple(each.message for each in said))
        root = self._roots.get(_plain_tools(tools))
        found = self._walk(root, [(each, plain(each.message)) for each in said]) if root else None
        return found or Place(None, tuple(each.message for each in said))

    def add(self, place: Place, tools: Sequence[Tool], talk: Talk, number: int, completion: ServedCompletion) -> None:
        """A completion was given there."""
        message = Message("assistant", completion.text, completion.calls)
        node = Answered(talk, number, completion.name, plain(message))
        above = place.node or self._root(tools)
        above.below.setdefault(tuple(plain(each) for each in place.unheard), []).append(node)
        self._names[completion.name] = node

    def _root(self, tools: Sequence[Tool]) -> Answered:
        offered = _plain_tools(tools)
        if offered not in self._roots:
            self._roots[offered] = Answered()
        return self._roots[offered]

    def _walk(self, node: Answered, left: list[tuple[Said, Plain]]) -> Place | None:
        """The furthest known completion behind which nothing but new messages stands."""
        for heard in sorted(node.below, key=len, reverse=True):
            size = len(heard)
            if len(left) <= size or left[size][0].message.role != "assistant" or not _begins(left, heard):
                continue
            for child in reversed(node.below[heard]):
                if child.is_meant(left[size][0]) and (found := self._walk(child, left[size + 1 :])):
                    is_other = left[size][1] != child.said
                    return Place(found.node, found.unheard, found.repaired + is_other)
        if node.talk is None or any(said.message.role == "assistant" for said, _ in left):
            return None
        return Place(node, tuple(said.message for said, _ in left))


def _begins(left: Sequence[tuple[Said, Plain]], heard: tuple[Plain, ...]) -> bool:
    return all(said == each for (_, said), each in zip(left, heard, strict=False))


def _plain_tools(tools: Sequence[Tool]) -> Plain:
    return tuple((tool.name, tool.description, _arguments(ToolCall("", tool.parameters))) for tool in tools)
