"""What a reply says beside its calls."""

from __future__ import annotations

from strop.types import Message

# how calls open in the chat templates of the families that are known
_MARKS = ("<call>", "<tool_call>", "[TOOL_CALLS]", "<|python_tag|>", "<function_call>")


def before_calls(message: Message) -> str:
    """What stands before the first call; all, where nothing is called."""
    text = message.content
    if message.tool_calls:
        text = text[: min((at for mark in _MARKS if (at := text.find(mark)) >= 0), default=len(text))]
    return text.strip()
