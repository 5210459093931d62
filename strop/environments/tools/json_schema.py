"""Validation of tool-call arguments against the subset of JSON Schema used here."""

from __future__ import annotations

import json
from typing import Any

from strop.environments.tools.tool import WrongCall

_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def arguments_of(text: str, schema: str) -> dict[str, Any]:
    """The arguments that a call gives, or what is wrong with them."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        raise WrongCall("arguments are no JSON") from None
    told = json.loads(schema)
    known, required = told.get("properties", {}), told.get("required", [])
    if not isinstance(given, dict):
        raise WrongCall(f"arguments must be an object of {', '.join(known) or 'nothing'}")
    if missing := [name for name in required if name not in given]:
        raise WrongCall(f"missing {', '.join(missing)}")
    if unknown := [name for name in given if name not in known]:
        raise WrongCall(f"unknown {', '.join(unknown)[:80]}; there are {', '.join(known) or 'none'}")
    for name, value in given.items():
        _check(name, value, known[name])
    return given


def _check(name: str, value: Any, schema: dict[str, Any]) -> None:
    kind = schema.get("type")  # of foreign tools perhaps a list, or something that is not known here
    known = _KINDS.get(kind) if isinstance(kind, str) else None
    is_right = known is None or isinstance(value, known)
    if isinstance(value, bool) and kind in ("integer", "number"):
        is_right = False
    if not is_right:
        raise WrongCall(f"{name} must be of type {kind}")
    if "enum" in schema and value not in schema["enum"]:
        raise WrongCall(f"{name} must be one of {', '.join(map(str, schema['enum']))}")
