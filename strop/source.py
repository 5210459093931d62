"""A run as Python source: every mechanism spelled out, so that executing the file makes the same run again."""

from __future__ import annotations

import runpy
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from pathlib import Path, PurePath
from typing import Any

from strop.errors import ConfigurationError

_WIDTH = 100


def to_source(run: Any, title: str) -> str:
    """The file `recipe.py` of a run folder."""
    modules: set[tuple[str, str]] = set()
    body = _spell(run, modules, 0)
    imports = "\n".join(f"from {module} import {name}" for module, name in sorted(modules))
    footer = 'if __name__ == "__main__":\n    from strop.launch import launch\n\n    launch(run)\n'
    return f'"""{title}"""\n\n{imports}\n\nrun = {body}\n\n{footer}'


def from_source(path: Path) -> Any:
    """The `run` that a recipe file defines."""
    if not path.is_file():
        raise ConfigurationError(f"{path} does not exist")
    names = runpy.run_path(str(path))
    if "run" not in names:
        raise ConfigurationError(f"{path} defines no `run`")
    return names["run"]


def _spell(value: Any, modules: set[tuple[str, str]], depth: int) -> str:
    if is_dataclass(value) and not isinstance(value, type):
        return _spell_dataclass(value, modules, depth)
    if isinstance(value, Enum):
        modules.add((type(value).__module__, type(value).__qualname__))
        return f"{type(value).__qualname__}.{value.name}"
    if isinstance(value, tuple | list):
        items = [_spell(item, modules, depth + 1) for item in value]
        ends = "[]" if isinstance(value, list) else "()"
        comma = "," if isinstance(value, tuple) and len(items) == 1 else ""
        return _join(ends[0], items, comma + ends[1], depth)
    if isinstance(value, dict):
        return _join("{", [f"{k!r}: {_spell(v, modules, depth + 1)}" for k, v in value.items()], "}", depth)
    if isinstance(value, PurePath):
        return repr(str(value))
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    raise ConfigurationError(f"a {type(value).__name__} cannot be written into recipe.py: make it a dataclass")


def _spell_dataclass(value: Any, modules: set[tuple[str, str]], depth: int) -> str:
    kind = type(value)
    modules.add((kind.__module__, kind.__qualname__))
    # the top level is complete, so that a later change of a default cannot change an old run
    shown = [f for f in fields(value) if f.init and (depth == 0 or _is_set(f, getattr(value, f.name)))]
    items = [f"{f.name}={_spell(getattr(value, f.name), modules, depth + 1)}" for f in shown]
    return _join(f"{kind.__qualname__}(", items, ")", depth)


def _is_set(field: Any, value: Any) -> bool:
    return field.default is MISSING or field.repr


def _join(start: str, items: list[str], end: str, depth: int) -> str:
    line = start + ", ".join(items) + end
    if len(line) + 4 * depth <= _WIDTH and "\n" not in line:
        return line
    indent = "    " * (depth + 1)
    return start + "\n" + "".join(f"{indent}{item},\n" for item in items) + "    " * depth + end.lstrip(",")
