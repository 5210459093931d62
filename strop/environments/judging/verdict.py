"""A verdict in one token: how a model is asked about a completion to a task, and the two words it answers with."""

from __future__ import annotations

from collections.abc import Sequence

from strop.types import Message

GOOD, BAD = "+", "-"
ASKED = "good or bad?"


def about(messages: Sequence[Message], completion: str) -> tuple[Message, ...]:
    """What is read before a verdict: the task, the completion to it, and the question."""
    return (*messages, Message("assistant", completion, is_completion=True), Message("user", ASKED))
