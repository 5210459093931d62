"""Control parts in other worlds: those of a recipe, as new, where a study wants them."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from strop.capabilities import plays
from strop.roles import World

Part = TypeVar("Part")


def moved(part: Part, worlds: tuple[World, ...], seed: int) -> Part:
    """A copy without memory, in which every set of worlds and every seed is this one."""
    found: Any = part
    if isinstance(part, tuple):
        is_worlds = bool(part) and all(plays(item, World) for item in part)
        found = worlds if is_worlds else tuple(moved(item, worlds, seed) for item in part)
    elif is_dataclass(part) and not isinstance(part, type):
        values = {field.name: getattr(part, field.name) for field in fields(part) if field.init}
        changes = {name: seed if name == "seed" else moved(value, worlds, seed) for name, value in values.items()}
        found = replace(part, **changes)
    return found  # type: ignore[no-any-return]
