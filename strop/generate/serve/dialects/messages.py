"""Anthropic messages API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
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
    text_of,
    tool_of,
)
from strop.types import Message, ToolCall

_BILLING = "x-anthropic-billing-header"  # a line that one client puts first and changes from turn to turn


class Messages(Dialect):
    """`POST /v1/messages`."""

    def parse(self, body: dict[str, Any]) -> Ask:
        system = _system(body.get("system"))
        said = [each for data in field_of(body, "messages", list, []) for each in _said(data)]
        tools = field_of(body, "tools", list, [])
        return Ask(
            (*((Said(Message("system", system)),) if system else ()), *said),
            tuple(tool_of(each, "input_schema") for each in tools),
            field_of(body, "model", str, ""),
            count_of(body, "max_tokens"),
            stops_of(body.get("stop_sequences")),
            number_of(body, "temperature"),
            number_of(body, "top_p", 1.0),
            max(field_of(body, "top_k", int, 0), 0),
            None,
            field_of(body, "stream", bool, False),
        )

    def answer(self, completion: ServedCompletion, ask: Ask) -> dict[str, Any]:
        blocks = [_thinking(completion)] if completion.thought else []
        blocks += [{"type": "text", "text": completion.text}] if completion.text or not completion.calls else []
        blocks += [_use(completion, number) | {"input": _input(call)} for number, call in enumerate(completion.calls)]
        ending = {"stop_reason": _stop(completion), "stop_sequence": None, "usage": _usage(completion)}
        return {**_head(completion.name, ask), "content": blocks, **ending}

    def stream(self, ask: Ask, body: dict[str, Any], name: str) -> Events:
        return MessageEvents(ask, name)

    def refuse(self, status: int, message: str) -> dict[str, Any]:
        kinds = {401: "authentication_error", 404: "not_found_error", 413: "request_too_large"}
        kind = kinds.get(status, "invalid_request_error" if status < 500 else "api_error")
        return {"type": "error", "error": {"type": kind, "message": message}}


@dataclass
class MessageEvents(Events):
    """Streamed content blocks: start, deltas, stop."""

    ask: Ask
    name: str
    _number: int = field(default=-1, init=False)  # of the block that is open
    _kind: str = field(default="", init=False)

    def begin(self) -> Iterator[bytes]:
        usage = {"input_tokens": 0, "output_tokens": 0}
        message = {
            **_head(self.name, self.ask),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        yield _event("message_start", message=message)

    def go_on(self, thought: str, text: str) -> Iterator[bytes]:
        if thought:
            yield from self._open("thinking", {"type": "thinking", "thinking": "", "signature": ""})
            yield self._delta({"type": "thinking_delta", "thinking": thought})
        if text:
            yield from self._open("text", {"type": "text", "text": ""})
            yield self._delta({"type": "text_delta", "text": text})

    def end(self, completion: ServedCompletion) -> Iterator[bytes]:
        for number, call in enumerate(completion.calls):
            yield from self._open(f"call{number}", _use(completion, number) | {"input": {}})
            yield self._delta({"type": "input_json_delta", "partial_json": json.dumps(_input(call))})
        yield from self._close()
        yield _event(
            "message_delta", delta={"stop_reason": _stop(completion), "stop_sequence": None}, usage=_usage(completion)
        )
        yield _event("message_stop")

    def _open(self, kind: str, block: dict[str, Any]) -> Iterator[bytes]:
        if self._kind != kind:
            yield from self._close()
            self._number, self._kind = self._number + 1, kind
            yield _event("content_block_start", index=self._number, content_block=block)

    def _close(self) -> Iterator[bytes]:
        if self._kind == "thinking":
            yield self._delta({"type": "signature_delta", "signature": f"sig_{self.name}"})
        if self._kind:
            self._kind = ""
            yield _event("content_block_stop", index=self._number)

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return _event("content_block_delta", index=self._number, delta=delta)


def _event(kind: str, **fields: Any) -> bytes:
    return event({"type": kind, **fields}, kind)


def _system(content: Any) -> str:
    blocks = content if isinstance(content, list) else [content]
    return "\n".join(told for each in blocks if (told := text_of([each] if each else None)) and _BILLING not in told)


def _said(data: Any) -> Iterator[Said]:
    """Results of tools are messages of their own, before what the user says beside them."""
    if not isinstance(data, dict) or data.get("role") not in ("user", "assistant", "system"):
        raise Refusal(400, "a message has the role user or assistant")
    content = data.get("content")
    blocks = [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []
    if data["role"] == "assistant":
        uses = [each for each in blocks if each.get("type") == "tool_use"]
        calls = [ToolCall(str(each.get("name")), json.dumps(each.get("input") or {})) for each in uses]
        ids = [str(each.get("id", each.get("signature", ""))) for each in blocks]
        yield Said(Message("assistant", _texts(content), tuple(calls)), tuple(ids))
        return
    for each in blocks:
        if each.get("type") == "tool_result":
            yield Said(message_of("tool", each.get("content")))
    if (told := message_of(data["role"], _spoken(content))).content:
        yield Said(told)


def _texts(content: Any) -> str:
    return text_of(_spoken(content))


def _spoken(content: Any) -> Any:
    """All but thoughts, calls and results."""
    if not isinstance(content, list):
        return content
    others = ("thinking", "redacted_thinking", "tool_use", "tool_result")
    return [each for each in content if not (isinstance(each, dict) and each.get("type") in others)]


def _use(completion: ServedCompletion, number: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": completion.call_id(number), "name": completion.calls[number].name}


def _input(call: ToolCall) -> Any:
    return json.loads(call.arguments)


def _thinking(completion: ServedCompletion) -> dict[str, Any]:
    return {"type": "thinking", "thinking": completion.thought, "signature": f"sig_{completion.name}"}


def _head(name: str, ask: Ask) -> dict[str, Any]:
    return {"id": f"msg_{name}", "type": "message", "role": "assistant", "model": ask.model}


def _stop(completion: ServedCompletion) -> str:
    if completion.stop is Stop.STOP:
        return "tool_use" if completion.calls else "end_turn"
    return "max_tokens"


def _usage(completion: ServedCompletion) -> dict[str, int]:
    return {"input_tokens": completion.num_read, "output_tokens": completion.num_written}
