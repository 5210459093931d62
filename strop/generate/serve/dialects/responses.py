"""OpenAI responses API."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from strop.backends import Stop
from strop.generate.serve.ask_requests import Ask, Refusal, Said, ServedCompletion
from strop.generate.serve.dialects.dialect import Dialect, Events
from strop.generate.serve.dialects.reading import count_of, event, field_of, message_of, number_of, tool_of
from strop.types import Message, ToolCall

_ROLES = {"developer": "system"}


class Responses(Dialect):
    """`POST /v1/responses`; earlier turns are repeated in the request or named by `previous_response_id`."""

    def parse(self, body: dict[str, Any]) -> Ask:
        given = body.get("input") or []
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        if not isinstance(items, list):
            raise Refusal(400, "input is text or a list of items")
        said = _joined([_said(item) for item in items])
        about = field_of(body, "instructions", str, "")
        return Ask(
            (*((Said(Message("system", about)),) if about else ()), *said),
            tuple(tool_of(each, "parameters") for each in field_of(body, "tools", list, [])),
            field_of(body, "model", str, ""),
            count_of(body, "max_output_tokens"),
            (),
            number_of(body, "temperature"),
            number_of(body, "top_p", 1.0),
            0,
            None,
            field_of(body, "stream", bool, False),
            field_of(body, "previous_response_id", str, ""),
        )

    def answer(self, completion: ServedCompletion, ask: Ask) -> dict[str, Any]:
        return _response(completion.name, ask, completion)

    def stream(self, ask: Ask, body: dict[str, Any], name: str) -> Events:
        return ResponseEvents(ask, name)

    def refuse(self, status: int, message: str) -> dict[str, Any]:
        kind = "invalid_request_error" if status < 500 else "server_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": str(status)}}


@dataclass
class ResponseEvents(Events):
    """Streamed output items: added, deltas, done."""

    ask: Ask
    name: str
    _number: int = field(default=0, init=False)  # of the next event
    _place: int = field(default=-1, init=False)  # of the item that is open, in the output
    _kind: str = field(default="", init=False)
    _told: str = field(default="", init=False)  # of that item

    def begin(self) -> Iterator[bytes]:
        yield self._event("response.created", response=_response(self.name, self.ask))
        yield self._event("response.in_progress", response=_response(self.name, self.ask))

    def go_on(self, thought: str, text: str) -> Iterator[bytes]:
        if thought:
            yield from self._open("reasoning")
            self._told += thought
            yield self._event("response.reasoning_text.delta", **self._part, delta=thought)
        if text:
            yield from self._open("message")
            self._told += text
            yield self._event("response.output_text.delta", **self._part, delta=text, logprobs=[])

    def end(self, completion: ServedCompletion) -> Iterator[bytes]:
        yield from self._close()
        for number, call in enumerate(completion.calls):
            self._place += 1
            item = _call(completion, number)
            at = {"item_id": item["id"], "output_index": self._place}
            begun = item | {"arguments": "", "status": "in_progress"}
            yield self._event("response.output_item.added", output_index=self._place, item=begun)
            yield self._event("response.function_call_arguments.delta", **at, delta=call.arguments)
            yield self._event("response.function_call_arguments.done", **at, arguments=call.arguments, name=call.name)
            yield self._event("response.output_item.done", output_index=self._place, item=item)
        kind = "response.completed" if completion.stop is Stop.STOP else "response.incomplete"
        yield self._event(kind, response=_response(self.name, self.ask, completion))

    @property
    def _part(self) -> dict[str, Any]:
        return {"item_id": _item_id(self._kind, self.name), "output_index": self._place, "content_index": 0}

    def _open(self, kind: str) -> Iterator[bytes]:
        if self._kind == kind:
            return
        yield from self._close()
        self._place, self._kind, self._told = self._place + 1, kind, ""
        item = _item(kind, self.name, "") | {"content": [], "status": "in_progress"}
        yield self._event("response.output_item.added", output_index=self._place, item=item)
        yield self._event("response.content_part.added", **self._part, part=_content(kind, ""))

    def _close(self) -> Iterator[bytes]:
        if not self._kind:
            return
        if self._kind == "message":
            yield self._event("response.output_text.done", **self._part, text=self._told, logprobs=[])
        else:
            yield self._event("response.reasoning_text.done", **self._part, text=self._told)
        yield self._event("response.content_part.done", **self._part, part=_content(self._kind, self._told))
        item = _item(self._kind, self.name, self._told)
        yield self._event("response.output_item.done", output_index=self._place, item=item)
        self._kind = ""

    def _event(self, kind: str, **fields: Any) -> bytes:
        self._number += 1
        return event({"type": kind, "sequence_number": self._number - 1, **fields}, kind)


def _said(item: Any) -> Said:
    if not isinstance(item, dict):
        raise Refusal(400, "an item of input is an object")
    ids = (str(item.get("id") or ""), str(item.get("call_id") or ""))
    match item.get("type", "message"):
        case "message":
            role = _ROLES.get(str(item.get("role")), str(item.get("role")))
            if role not in ("system", "user", "assistant"):
                raise Refusal(400, f"role {role!r} is not known: system, developer, user and assistant are")
            return Said(message_of(role, item.get("content")), ids)
        case "function_call":
            call = ToolCall(str(item.get("name")), str(item.get("arguments") or "{}"))
            return Said(Message("assistant", "", (call,)), ids)
        case "function_call_output":
            return Said(message_of("tool", item.get("output")))
        case "reasoning":
            return Said(Message("assistant", ""), ids)
    raise Refusal(400, f"an item of type {item.get('type')} is not understood")


def _joined(said: list[Said]) -> list[Said]:
    """Thought, text and calls of one completion come as items of their own: one message again."""
    whole: list[Said] = []
    for each in said:
        if whole and each.message.role == whole[-1].message.role == "assistant":
            before, now = whole[-1].message, each.message
            message = Message("assistant", before.content + now.content, (*before.tool_calls, *now.tool_calls))
            whole[-1] = Said(message, (*whole[-1].ids, *each.ids))
        else:
            whole.append(each)
    return whole


def _item_id(kind: str, name: str) -> str:
    return f"{'rs' if kind == 'reasoning' else 'msg'}_{name}"


def _content(kind: str, text: str) -> dict[str, Any]:
    if kind == "reasoning":
        return {"type": "reasoning_text", "text": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _item(kind: str, name: str, text: str) -> dict[str, Any]:
    item = {"id": _item_id(kind, name), "type": kind, "status": "completed", "content": [_content(kind, text)]}
    more: dict[str, Any] = {"summary": []} if kind == "reasoning" else {"role": "assistant"}
    return item | more


def _call(completion: ServedCompletion, number: int) -> dict[str, Any]:
    call = completion.calls[number]
    about = {"name": call.name, "arguments": call.arguments, "status": "completed"}
    return {
        "id": f"fc_{completion.name}c{number}",
        "type": "function_call",
        "call_id": completion.call_id(number),
        **about,
    }


def _response(name: str, ask: Ask, completion: ServedCompletion | None = None) -> dict[str, Any]:
    output, is_whole = [], completion is None or completion.stop is Stop.STOP
    if completion is not None:
        output += [_item("reasoning", name, completion.thought)] if completion.thought else []
        output += [_item("message", name, completion.text)] if completion.text or not completion.calls else []
        output += [_call(completion, number) for number in range(len(completion.calls))]
    return {
        "id": f"resp_{name}",
        "object": "response",
        "created_at": 0,
        "model": ask.model,
        "status": "in_progress" if completion is None else "completed" if is_whole else "incomplete",
        "incomplete_details": None if is_whole else {"reason": "max_output_tokens"},
        "error": None,
        "instructions": None,
        "metadata": {},
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": ask.after or None,
        "temperature": ask.temperature,
        "tool_choice": "auto",
        "tools": [],
        "top_p": ask.top_p,
        "usage": _usage(completion) if completion else None,
    }


def _usage(completion: ServedCompletion) -> dict[str, Any]:
    return {
        "input_tokens": completion.num_read,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": completion.num_written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": completion.num_read + completion.num_written,
    }
