"""Conversion of command-line text to the values of annotated types, and descriptions of those types."""

from __future__ import annotations

import math
import types
import typing
from enum import Enum
from pathlib import Path
from typing import Any


def read_as(text: str, kind: Any) -> Any:
    """Text as a value of a type; ValueError if it does not fit, TypeError if no text can."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _of_any(text, arguments)
    if origin is typing.Literal:
        return _literal(text, arguments)
    if origin is tuple:
        return _tuple(text, arguments)
    if kind is bool:
        return _yes_or_no(text)
    if kind is int:
        return _whole(text)
    if kind is float:
        return _finite(text)
    if kind in (str, Path) or kind is typing.Any:
        return kind(text) if kind is Path else text
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(text)
    raise TypeError(kind)


def _yes_or_no(text: str) -> bool:
    if text.lower() not in ("true", "yes", "1", "false", "no", "0"):
        raise ValueError(text)
    return text.lower() in ("true", "yes", "1")


def _of_any(text: str, kinds: tuple[Any, ...]) -> Any:
    """Value of the first member of a union that the text fits."""
    if text.lower() == "none" and types.NoneType in kinds:
        return None
    readable = [kind for kind in kinds if kind is not types.NoneType]
    for kind in readable[:-1]:
        try:
            return read_as(text, kind)
        except (ValueError, TypeError):
            continue
    return read_as(text, readable[-1])


def _literal(text: str, values: tuple[Any, ...]) -> Any:
    for value in values:
        if str(value) == text:
            return value
    raise ValueError(text)


def _tuple(text: str, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    items = [_unquoted(item.strip()) for item in text.strip("()[]").split(",") if item.strip()]
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(read_as(item, kinds[0]) for item in items)
    if len(items) != len(kinds):
        raise ValueError(text)
    return tuple(read_as(item, kind) for item, kind in zip(items, kinds, strict=True))


def _unquoted(item: str) -> str:
    """Text without the quotes that Python writes in a list."""
    return item[1:-1] if len(item) > 1 and item[0] == item[-1] and item[0] in "'\"" else item


def _whole(text: str) -> int:
    """1000, 1_000 or 1e3."""
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if not math.isfinite(number) or number != int(number) or "." in text:
            raise ValueError(text) from None
        return int(number)


def _finite(text: str) -> float:
    number = float(text)
    if math.isnan(number):
        raise ValueError(text)
    return number


def describe(kind: Any) -> str:
    """A type in words."""
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text", types.NoneType: "none"}
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(describe(argument) for argument in arguments)
    if origin is typing.Literal:
        return "one of " + ", ".join(map(str, arguments))
    if origin is tuple and arguments[-1] is Ellipsis:
        return f"a list (a,b,...), each {describe(arguments[0])}"
    if origin is tuple:
        return f"{len(arguments)} values (a,b), each {describe(arguments[0])}"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "one of " + ", ".join(str(member.value) for member in kind)
    return words.get(kind) or f"a {getattr(kind, '__name__', kind)}"
