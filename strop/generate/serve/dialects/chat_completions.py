"""OpenAI chat completions API."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from strop.backends import Stop
from strop.generate.serve.ask_requests import Ask, Refusal, Said, ServedCompletion
from strop.generate.serve.dialects.dialect import Dialect, Events
from strop.generate.serve.dialects.reading import (
    count_of,
    event,
    field_of,
    message_of,
    number_of,
    stops_of,
    tool_of,
)
from strop.types import ToolCall

_ROLES = {"developer": "system", "function": "tool"}
_KNOWN = ("system", "user", "assistant", "tool")


class ChatCompletions(Dialect):
    """`POST /v1/chat/completions`."""

    def parse(self, body: dict[str, Any]) -> Ask:
        if field_of(body, "n", int, 1) != 1:
            raise Refusal(400, "n: one answer to a request; ask again for another")
        _refuse_unserved(body)
        most = count_of(body, "max_completion_tokens") or count_of(body, "max_tokens")
        return Ask(
            tuple(_said(each) for each in field_of(body, "messages", list, [])),
            tuple(tool_of(each.get("function"), "parameters") for each in _tools(body)),
            field_of(body, "model", str, ""),
            most,
            stops_of(body.get("stop")),
            number_of(body, "temperature"),
            number_of(body, "top_p", 1.0),
            max(field_of(body, "top_k", int, 0), 0),
            field_of(body, "seed", int, None),
            field_of(body, "stream", bool, False),
        )

    def answer(self, completion: ServedCompletion, ask: Ask) -> dict[str, Any]:
        message: dict[str, Any] = {
            "role": "assistant",
            "content": completion.text or (None if completion.calls else ""),
        }
        if completion.thought:
            message["reasoning_content"] = completion.thought
        if completion.calls:
            message["tool_calls"] = _calls(completion)
        choice = {"index": 0, "message": message, "finish_reason": _finish(completion), "logprobs": None}
        return {**_head(completion.name, ask, "chat.completion"), "choices": [choice], "usage": _usage(completion)}

    def stream(self, ask: Ask, body: dict[str, Any], name: str) -> Events:
        options = field_of(body, "stream_options", dict, {})
        return ChatEvents(ask, name, bool(options.get("include_usage")))

    def refuse(self, status: int, message: str) -> dict[str, Any]:
        kind = "invalid_request_error" if status < 500 else "server_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": status}}


@dataclass
class ChatEvents(Events):
    """Streamed chunks of a completion."""

    ask: Ask
    name: str
    wants_usage: bool = False

    def begin(self) -> Iterator[bytes]:
        yield self._chunk({"role": "assistant", "content": ""})

    def go_on(self, thought: str, text: str) -> Iterator[bytes]:
        if thought:
            yield self._chunk({"reasoning_content": thought})
        if text:
            yield self._chunk({"content": text})

    def end(self, completion: ServedCompletion) -> Iterator[bytes]:
        if completion.calls:
            calls = [{"index": number, **call} for number, call in enumerate(_calls(completion))]
            yield self._chunk({"tool_calls": calls})
        yield self._chunk({}, _finish(completion))
        if self.wants_usage:
            head = _head(self.name, self.ask, "chat.completion.chunk")
            yield event({**head, "choices": [], "usage": _usage(completion)})
        yield event("[DONE]")

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return event({**_head(self.name, self.ask, "chat.completion.chunk"), "choices": [choice]})


def _refuse_unserved(body: dict[str, Any]) -> None:
    """What would be left out without a word."""
    if field_of(body, "logprobs", bool, False) or field_of(body, "top_logprobs", int, 0):
        raise Refusal(
            400, "logprobs are not served: leave logprobs out; a run keeps those of its rollouts in its ledger"
        )
    kind = field_of(body, "response_format", dict, {}).get("type", "text")
    if kind != "text":
        raise Refusal(400, f"response_format {kind!r} is not served: ask for JSON in the prompt, and check what comes")


def _said(data: Any) -> Said:
    if not isinstance(data, dict):
        raise Refusal(400, "a message is an object with role and content")
    role = _ROLES.get(str(data.get("role")), str(data.get("role")))
    if role not in _KNOWN:
        raise Refusal(400, f"role {role!r} is not known: {', '.join(_KNOWN)} and developer are")
    calls = [_call(each) for each in field_of(data, "tool_calls", list, [])]
    ids = [str(each.get("id", "")) for each in field_of(data, "tool_calls", list, [])]
    return Said(message_of(role, data.get("content"), tuple(calls)), tuple(ids))


def _call(data: Any) -> ToolCall:
    function = data.get("function") if isinstance(data, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise Refusal(400, "a tool call needs a function with a name")
    return ToolCall(function["name"], str(function.get("arguments") or "{}"))


def _tools(body: dict[str, Any]) -> list[dict[str, Any]]:
    tools = field_of(body, "tools", list, [])
    if any(not isinstance(each, dict) or each.get("type") != "function" for each in tools):
        raise Refusal(400, "a tool of another type than function is not understood")
    return [] if body.get("tool_choice") == "none" else tools


def _calls(completion: ServedCompletion) -> list[dict[str, Any]]:
    return [
        {
            "id": completion.call_id(number),
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for number, call in enumerate(completion.calls)
    ]


def _head(name: str, ask: Ask, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{name}", "object": kind, "created": 0, "model": ask.model}


def _finish(completion: ServedCompletion) -> str:
    if completion.stop is Stop.STOP:
        return "tool_calls" if completion.calls else "stop"
    return "length"


def _usage(completion: ServedCompletion) -> dict[str, int]:
    total = completion.num_read + completion.num_written
    return {"prompt_tokens": completion.num_read, "completion_tokens": completion.num_written, "total_tokens": total}
