"""Parsed action of a completion (tool name and arguments, or an answer), to compare with an expert's action.

An action is a tool call, a `<call>`, what stands behind the last `Action:` (`click(100, 200)`), or else the answer.
Arguments that are JSON are compared as values, others without regard to blanks.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from strop.environments.format.think_tags import between, final_answer
from strop.types import Message

_OPEN, _CLOSE = "<call>", "</call>"
ANSWER = "answer"  # the kind of a completion without a call
_ACTION = re.compile(r"(?:^|\n)[ \t*#]*action[ \t*]*:[ \t*]*(?P<said>\S.*)\Z", re.IGNORECASE | re.DOTALL)
_NAMED = re.compile(r"(?P<kind>[A-Za-z_][\w.]*)\s*(?P<rest>.*)", re.DOTALL)


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
        return _said(text) if text and _OPEN not in text and _CLOSE not in text else Action()
    kind, _, arguments = calls[0].strip().partition(" ")
    is_one = len(calls) == 1 and text.count(_OPEN) <= 1
    return Action(kind, _plain(arguments)) if is_one else Action()


def _said(text: str) -> Action:
    """What is to be done by the last line `Action:`, or the whole text as an answer."""
    lines = _ACTION.split(text)
    found = _NAMED.fullmatch(lines[1].strip("`* \n")) if len(lines) > 1 else None
    return Action(found["kind"].lower(), _plain(found["rest"])) if found else Action(ANSWER, text)


def _plain(arguments: str) -> str:
    """Arguments as they are compared."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return "".join(arguments.split()) if "(" in arguments else " ".join(arguments.split())
