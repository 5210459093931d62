"""Requests as JSON: what a field may be, said in one way when it is not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from strop.generate.serve.asks import Refusal
from strop.types import Tool

_TEXTS = ("text", "input_text", "output_text", "refusal")


def field_of(body: dict[str, Any], name: str, kind: type | tuple[type, ...], default: Any) -> Any:
    """A field of a request, or the default where it is missing or null."""
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool):
        raise Refusal(400, f"{name} is {type(value).__name__}, which it may not be")
    return value


def number_of(body: dict[str, Any], name: str) -> float | None:
    value = field_of(body, name, (int, float), None)
    return None if value is None else float(value)


def text_of(content: Any) -> str:
    """Text, or blocks of text one after the other."""
    match content:
        case None:
            return ""
        case str():
            return content
        case list():
            return "".join(_block(block) for block in content)
    raise Refusal(400, f"content is {type(content).__name__}; text or a list of blocks is understood")


def _block(block: Any) -> str:
    if isinstance(block, str):
        return block
    if isinstance(block, dict) and block.get("type") in _TEXTS:
        return str(block.get("text", block.get("refusal", "")))
    kind = block.get("type") if isinstance(block, dict) else type(block).__name__
    raise Refusal(400, f"a content block of type {kind} is not understood: text alone is")


def tool_of(about: Any, schema: str) -> Tool:
    """A function that may be called."""
    if not isinstance(about, dict) or not isinstance(about.get("name"), str):
        raise Refusal(400, "a tool needs a name")
    return Tool(about["name"], str(about.get("description") or ""), json.dumps(about.get(schema) or {}))


def stops_of(value: Any) -> tuple[str, ...]:
    stops: Sequence[Any] = [value] if isinstance(value, str) else value or []
    if not all(isinstance(each, str) for each in stops):
        raise Refusal(400, "texts that end a reply must be text")
    return tuple(each for each in stops if each)


def event(data: Any, name: str = "") -> bytes:
    """One event of a stream."""
    told = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {name}\n" if name else "").encode() + f"data: {told}\n\n".encode()
