"""Parsed action of a completion (tool name and arguments, or an answer), to compare with an expert's action."""

from __future__ import annotations

from dataclasses import dataclass

from strop.environments.format.think_tags import between, final_answer
from strop.types import Message

_OPEN, _CLOSE = "<call>", "</call>"
ANSWER = "answer"  # the kind of a completion without a call


@dataclass(frozen=True)
class Action:
    """Tool call or answer; `kind` is empty if the completion cannot be parsed as exactly one of them."""

    kind: str = ""
    arguments: str = ""

    @property
    def is_formed(self) -> bool:
        return self.kind != ""


def action_in(completion: Message) -> Action:
    """The one action of a completion; none where its working has no end, a call is not closed, or there are several."""
    text = final_answer(completion.content)
    calls = [f"{call.name} {call.arguments}" for call in completion.tool_calls] or between(text, _OPEN, _CLOSE)
    if not calls:
        return Action(ANSWER, text) if text and _OPEN not in text and _CLOSE not in text else Action()
    kind, _, arguments = calls[0].strip().partition(" ")
    is_one = len(calls) == 1 and text.count(_OPEN) <= 1
    return Action(kind, arguments.strip()) if is_one else Action()
