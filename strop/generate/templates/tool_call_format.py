"""Tool-call format of a model: detected by rendering a call with its chat template, used to parse completions.

If its markers are special tokens of the model, a marker spelled as ordinary text is not a call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from strop.generate.templates.chat_template import Template
from strop.types import IntArray, Message, Tool, ToolCall

_NAME, _KEY, _VALUE = "stand0in0tool", "stand0in0key", "stand0in0value"
_ARGUMENTS = json.dumps({_KEY: _VALUE})
_MARKER = r"(<[^<>]{1,40}>|\[[A-Z_]{1,40}\])"
_AS_JSON = re.compile(
    rf'{_MARKER}\s*\{{\s*"name":\s*"{_NAME}",\s*"(?:arguments|parameters)":.*?\}}\s*\}}\s*{_MARKER}?', re.DOTALL
)
_AS_WORDS = re.compile(rf"{_MARKER}{_NAME} .*?{_KEY}.*?{_MARKER}", re.DOTALL)
_BARE = re.compile(rf'\{{\s*"name":\s*"{_NAME}",\s*"(?:arguments|parameters)"', re.DOTALL)
_THOUGHT = ("<think>", "</think>")


@dataclass(frozen=True)
class Parts:
    """Completion split into thinking, text and tool calls."""

    thought: str = ""
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    is_ill_formed: bool = False  # there is a call that cannot be read; it stays in the text
    unclosed: str = ""  # a call at the end that is not closed

    @property
    def told(self) -> tuple[ToolCall, ...]:
        """The calls; behind them one without a name, where something is called that cannot be read."""
        return (*self.calls, *([ToolCall("", "")] if self.is_ill_formed or self.unclosed else []))


@dataclass(frozen=True)
class CallFormat:
    """Markers around a call, and whether its content is JSON or text; without markers a whole completion is one
    call.
    """

    template: Template
    opens: str = ""
    closes: str = ""
    is_json: bool = True
    form: str = ""  # a whole call with stand-ins, where JSON stands in it

    @classmethod
    def of(cls, template: Template) -> CallFormat | None:
        """That of a chat template; None: it shows no calls."""
        shown = template.shown((Message("user", "?"), Message("assistant", "", (ToolCall(_NAME, _ARGUMENTS),))))
        if found := _AS_JSON.search(shown):
            return cls(template, found.group(1), found.group(2) or "", form=found.group())
        if found := _AS_WORDS.search(shown):
            return cls(template, found.group(1), found.group(2), is_json=False)
        found = _BARE.search(shown)
        return cls(template, form=f"{found.group()}: {_ARGUMENTS}}}") if found else None

    def written(self, call: ToolCall, cover: Callable[[str], str] = str) -> str:
        """A call as the model writes it; its name and arguments are content, and may be covered."""
        if self.is_json:
            return self.form.replace(_ARGUMENTS, cover(call.arguments)).replace(_NAME, cover(call.name))
        words = [call.name, *map(str, json.loads(call.arguments).values())]
        return f"{self.opens}{cover(' '.join(words))}{self.closes}"

    def read(self, tokens: IntArray, tools: Sequence[Tool]) -> Parts:
        """Thought, text and calls of a completion, or of its beginning."""
        pieces = self._pieces(tokens)
        thought, rest = _apart(pieces)
        if not tools:
            return Parts(thought, "".join(rest))
        if not self.opens:
            return self._bare(thought, "".join(rest), tools)
        return self._between_markers(thought, rest, tools)

    def _pieces(self, tokens: IntArray) -> list[str]:
        """The completion's text, cut before and behind every marker."""
        markers, cut = self._markers
        pieces, begin = list[str](), 0
        for at, token in enumerate(tokens.tolist()):
            if token in markers:
                pieces += [self.template.text(tokens[begin:at]), markers[token]]
                begin = at + 1
        pieces.append(self.template.text(tokens[begin:]))
        if cut is None:
            return pieces
        return [part for piece in pieces for part in (cut.split(piece) if piece not in markers.values() else [piece])]

    @cached_property
    def _markers(self) -> tuple[dict[int, str], re.Pattern[str] | None]:
        """Markers that are tokens, and what finds the others in text."""
        ids = {
            marker: self.template.encode_completion(marker) for marker in (self.opens, self.closes, *_THOUGHT) if marker
        }
        loose = [re.escape(marker) for marker, tokens in ids.items() if len(tokens) != 1]
        known = {int(tokens[0]): marker for marker, tokens in ids.items() if len(tokens) == 1}
        return known, re.compile(f"({'|'.join(loose)})") if loose else None

    def _between_markers(self, thought: str, pieces: Sequence[str], tools: Sequence[Tool]) -> Parts:
        text, calls, is_ill, at = "", list[ToolCall](), False, 0
        while at < len(pieces):
            if pieces[at] != self.opens:
                text, at = text + pieces[at], at + 1
                continue
            end = (
                next((i for i in range(at + 1, len(pieces)) if pieces[i] == self.closes), None)
                if self.closes
                else at + 1
            )
            if end is None:
                return Parts(thought, text, tuple(calls), is_ill, "".join(pieces[at:]))
            call = self._call("".join(pieces[at + 1 : end + (not self.closes)]), tools)
            if call is None:
                text, is_ill = text + "".join(pieces[at : end + 1]), True
            else:
                calls.append(call)
            at = end + 1
        return Parts(thought, text.rstrip() if calls else text, tuple(calls), is_ill)

    def _bare(self, thought: str, text: str, tools: Sequence[Tool]) -> Parts:
        call = self._call(text, tools) if text.lstrip().startswith("{") else None
        return Parts(thought, "", (call,)) if call else Parts(thought, text)

    def _call(self, text: str, tools: Sequence[Tool]) -> ToolCall | None:
        """A call of one of these tools; None: it cannot be read."""
        name, arguments = _json(text) if self.is_json else _words(text, tools)
        is_known = any(tool.name == name for tool in tools)
        return ToolCall(name, json.dumps(arguments)) if is_known and isinstance(arguments, dict) else None


def _apart(pieces: Sequence[str]) -> tuple[str, list[str]]:
    """The thought at the beginning, and what stands behind it."""
    begun, ended = _THOUGHT
    first = next((i for i, piece in enumerate(pieces) if piece.strip()), len(pieces))
    if first == len(pieces) or pieces[first] != begun:
        return "", list(pieces)
    for at in range(first + 1, len(pieces)):
        if pieces[at] == ended:
            return "".join(pieces[first + 1 : at]), list(pieces[at + 1 :])
    return "".join(pieces[first + 1 :]), []


def _json(text: str) -> tuple[str, Any]:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return "", None
    if not isinstance(told, dict) or not isinstance(told.get("name"), str):
        return "", None
    return told["name"], told.get("arguments", told.get("parameters"))


def _words(text: str, tools: Sequence[Tool]) -> tuple[str, Any]:
    """`get red`: words behind the name are the tool's parameters, in the order of its schema; the last is the rest."""
    name, _, rest = text.partition(" ")
    schema = next((tool.parameters for tool in tools if tool.name == name), "{}")
    names = list(json.loads(schema).get("properties", {}))
    words = rest.split(" ", len(names) - 1) if names and rest else [rest] * bool(rest)
    return name, dict(zip(names, words, strict=True)) if len(names) == len(words) else None
