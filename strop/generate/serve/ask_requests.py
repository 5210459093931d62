"""Requests to the policy and their answers, independent of the API dialect and without tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from strop.backends import Stop
from strop.types import Message, Tool, ToolCall

_NAME = re.compile(r"[0-9a-f]{12}n[0-9]+")  # of a turn, wherever it stands in an id


class Refusal(Exception):  # noqa: N818 (it is an answer)
    """HTTP error of a request, with status and message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Said:
    """Message of a request with its ids: clients echo the ids that they were given."""

    message: Message
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ask:
    """One request; fields that are None or 0 take the server's default."""

    said: tuple[Said, ...]
    tools: tuple[Tool, ...] = ()
    model: str = ""
    max_tokens: int = 0
    stop: tuple[str, ...] = ()
    temperature: float | None = None
    top_p: float | None = None
    top_k: int = 0
    seed: int | None = None
    is_streamed: bool = False
    after: str = ""  # the id of the answer that this follows, where the client does not repeat what came before


@dataclass(frozen=True)
class ServedCompletion:
    """Completion of the policy, parsed into thinking, text and tool calls."""

    name: str  # of the turn; part of every id that a client is given
    text: str = ""
    thought: str = ""
    calls: tuple[ToolCall, ...] = ()
    stop: Stop = Stop.STOP
    is_ill_formed: bool = False  # it holds a call that cannot be read, which is then part of the text
    num_read: int = 0  # tokens
    num_written: int = 0

    def call_id(self, number: int) -> str:
        return f"call_{self.name}c{number}"


def names_in(ids: Iterable[str]) -> list[str]:
    """Names of turns that these ids were made from."""
    return [name for each in ids for name in _NAME.findall(each)]
