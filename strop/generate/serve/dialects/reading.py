"""Validation of JSON request fields, with uniform error messages."""

from __future__ import annotations

import json
import math
from typing import Any

from strop.errors import DataError
from strop.generate.serve.ask_requests import Refusal
from strop.models.tokens.picture_words import MARKER
from strop.storage.picture_store import picture_of
from strop.types import Message, Picture, Tool, ToolCall

_SEEN, _PICTURES = ("image_url", "input_image", "image"), 32  # blocks of pictures; pictures of a message
_LARGEST = 1e6  # of a number that anybody means
_TEXTS = ("text", "input_text", "output_text", "refusal")


def field_of(body: dict[str, Any], name: str, kind: type | tuple[type, ...], default: Any) -> Any:
    """A field of a request, or the default where it is missing or null."""
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool):
        raise Refusal(400, f"{name} is {type(value).__name__}, which it may not be")
    return value


def number_of(body: dict[str, Any], name: str, most: float = math.inf) -> float | None:
    """A number from 0 up to `most`, or None where it is missing."""
    value = field_of(body, name, (int, float), None)
    if value is not None and not 0 <= value <= most:  # what is no number, too
        raise Refusal(400, f"{name} is {value}, and may be from 0 to {most:g}")
    return None if value is None else float(min(value, _LARGEST))


def count_of(body: dict[str, Any], name: str) -> int:
    """A whole number from 1 on, or 0 where it is missing."""
    value = field_of(body, name, int, 0)
    if name in body and body[name] is not None and value < 1:
        raise Refusal(400, f"{name} is {value}, and may be 1 or more")
    return int(value)


def message_of(role: str, content: Any, calls: tuple[ToolCall, ...] = ()) -> Message:
    """A message of text and pictures, with a placeholder in the text for each."""
    blocks = content if isinstance(content, list) else []
    pictures = tuple(_picture(block) for block in blocks if _is_picture(block))
    if len(pictures) > _PICTURES:
        raise Refusal(400, f"a message of {len(pictures)} pictures: at most {_PICTURES} are read")
    shown = [MARKER if _is_picture(block) else block for block in blocks] if pictures else content
    return Message(role, text_of(shown), calls, images=pictures)


def _is_picture(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in _SEEN


def _picture(block: dict[str, Any]) -> Picture:
    """From a data URI, or from base64 beside its media type; addresses are never fetched."""
    source = block.get("image_url")
    if block["type"] == "image":
        held: dict[str, Any] = field_of(block, "source", dict, {})
        if held.get("type") != "base64":
            raise Refusal(400, f"a picture's source is {held.get('type')!r}: base64 alone is read, nothing is fetched")
        source = f"data:{held.get('media_type')};base64,{held.get('data')}"
    if isinstance(source, dict):
        source = source.get("url")
    if not isinstance(source, str):
        raise Refusal(400, f"a content block of type {block['type']} needs a data URI")
    try:
        return picture_of(source)
    except DataError as error:
        raise Refusal(400, str(error)) from None


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
    raise Refusal(400, f"a content block of type {kind} is not understood: text and pictures are")


def tool_of(about: Any, schema: str) -> Tool:
    """A function that may be called."""
    if not isinstance(about, dict) or not isinstance(about.get("name"), str):
        raise Refusal(400, "a tool needs a name")
    given = about.get(schema) or {}
    if not isinstance(given, dict) or not isinstance(given.get("properties", {}), dict):
        raise Refusal(400, f"{schema} of the tool {about['name']!r} is no JSON schema with properties")
    return Tool(about["name"], str(about.get("description") or ""), json.dumps(given))


def stops_of(value: Any) -> tuple[str, ...]:
    stops: Any = [value] if isinstance(value, str) else value or []
    if not isinstance(stops, list) or not all(isinstance(each, str) for each in stops):
        raise Refusal(400, "texts that end a completion must be text")
    return tuple(each for each in stops if each)


def event(data: Any, name: str = "") -> bytes:
    """One event of a stream."""
    told = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {name}\n" if name else "").encode() + f"data: {told}\n\n".encode()
