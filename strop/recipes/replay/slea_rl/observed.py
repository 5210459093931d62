"""What the environment said, apart from what was remembered and put behind it."""

from __future__ import annotations

from collections.abc import Sequence

from strop.types import Message

MARK = " experience: "  # between an observation and what is remembered of such


def observed(messages: Sequence[Message]) -> str:
    """What the environment said, without the experiences that were put behind it."""
    return " ".join(message.content.partition(MARK)[0] for message in messages)
