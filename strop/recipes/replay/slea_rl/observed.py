"""Observation texts without the experiences appended to them."""

from __future__ import annotations

from collections.abc import Sequence

from strop.types import Message

SEPARATOR = " experience: "  # between an observation and the experiences appended to it


def observed(messages: Sequence[Message]) -> str:
    """The environment's messages as one text, without appended experiences."""
    return " ".join(message.content.partition(SEPARATOR)[0] for message in messages)
