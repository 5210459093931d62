"""Control parts of a recipe in other environments, with fresh state, for studies."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from strop.capabilities import plays
from strop.roles import Environment

Part = TypeVar("Part")


def moved(part: Part, envs: tuple[Environment, ...], seed: int) -> Part:
    """A copy without memory, in which every set of environments and every seed is this one."""
    found: Any = part
    if isinstance(part, tuple):
        is_envs = bool(part) and all(plays(item, Environment) for item in part)
        found = envs if is_envs else tuple(moved(item, envs, seed) for item in part)
    elif is_dataclass(part) and not isinstance(part, type):
        values = {field.name: getattr(part, field.name) for field in fields(part) if field.init}
        changes = {name: seed if name == "seed" else moved(value, envs, seed) for name, value in values.items()}
        found = replace(part, **changes)
    return found  # type: ignore[no-any-return]
