"""Python source of a run: every mechanism spelled out, so that executing the file builds the same run.

A stateful part that is used in two places (a library that training fills and evaluation reads) is written once and
named, or the file would create two, one of which never learns.
"""

from __future__ import annotations

import runpy
from collections import Counter
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import Enum
from pathlib import Path, PurePath
from types import FunctionType
from typing import Any, TypeAlias

from strop.capabilities import Remembers, parts
from strop.errors import ConfigurationError, StropError
from strop.storage.named_files import absolute, is_path, own_modules, root_of
from strop.storage.trust import require_trust

_WIDTH = 100
Classes: TypeAlias = dict[tuple[str, str], str]  # by module and class: what it is called in the file


@dataclass
class _Names:
    """Names in one file."""

    classes: Classes = field(default_factory=dict)
    shared: dict[int, str] = field(default_factory=dict)  # parts that stand in several places, by identity


def to_source(run: Any, title: str) -> str:
    """The file `recipe.py` of a run folder."""
    names = _Names()
    shared = "".join(f"{_named(part, names)}\n" for part in _shared(run))
    body = _spell(run, names, 0)
    imports = _own_folders(run) + "\n".join(
        _import(module, name, called) for (module, name), called in sorted(names.classes.items())
    )
    footer = 'if __name__ == "__main__":\n    from strop.launch.running.launch import launch\n\n    launch(run)\n'
    return f'"""{title}"""\n\n{imports}\n\n{shared}run = {body}\n\n{footer}'


def _shared(run: Any) -> list[Any]:
    """Parts with a memory that stand in several places, those within others first."""
    found = [part for _, part in parts(run) if isinstance(part, Remembers)]
    times = Counter(map(id, found))
    return [part for part in {id(each): each for each in reversed(found)}.values() if times[id(part)] > 1]


def _named(part: Any, names: _Names) -> str:
    """The line that makes a shared part, and gives it the name by which the run speaks of it."""
    called = f"{type(part).__name__.lower()}_{len(names.shared) + 1}"
    line = f"{called} = {_spell(part, names, 1)}"
    names.shared[id(part)] = called
    return line


def from_source(path: Path, trust: bool = False) -> Any:
    """The `run` that a recipe file defines; one that this user did not write is executed only with `trust`."""
    if not path.is_file():
        raise ConfigurationError(f"{path} does not exist")
    require_trust(path, trust)
    try:
        names = runpy.run_path(str(path))
    except StropError:
        raise
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"{path} needs the module {error.name}, which is not found: put it back, or run from where it lies"
        ) from error
    except Exception as error:
        raise ConfigurationError(f"{path} cannot be executed: {type(error).__name__}: {error}") from error
    if "run" not in names:
        raise ConfigurationError(f"{path} defines no `run`")
    return names["run"]


def _own_folders(run: Any) -> str:
    """Where modules that are not installed lie, so that the file can be executed from anywhere."""
    folders = sorted({str(root_of(module)) for module in own_modules(run)})
    return "import sys\n\n" + "".join(f"sys.path.append({each!r})\n" for each in folders) + "\n" if folders else ""


def _import(module: str, name: str, called: str) -> str:
    return f"from {module} import {name}" + (f" as {called}" if called != name else "")


def _called(kind: type | FunctionType, names: _Names) -> str:
    """Name of a class or of a module's function, with a number behind it where another one has the same."""
    key = (kind.__module__, kind.__qualname__)
    if key not in names.classes:
        others = sum(name == kind.__qualname__ for _, name in names.classes)
        names.classes[key] = f"{kind.__qualname__}{others + 1}" if others else kind.__qualname__
    return names.classes[key]


def _spell(value: Any, names: _Names, depth: int) -> str:
    if id(value) in names.shared:
        return names.shared[id(value)]
    if is_dataclass(value) and not isinstance(value, type):
        return _spell_dataclass(value, names, depth)
    if isinstance(value, Enum):
        return f"{_called(type(value), names)}.{value.name}"
    if isinstance(value, tuple | list):
        items = [_spell(item, names, depth + 1) for item in value]
        ends = "[]" if isinstance(value, list) else "()"
        comma = "," if isinstance(value, tuple) and len(items) == 1 else ""
        return _join(ends[0], items, comma + ends[1], depth)
    if isinstance(value, dict):
        return _join("{", [f"{k!r}: {_spell(v, names, depth + 1)}" for k, v in value.items()], "}", depth)
    if isinstance(value, PurePath):
        return repr(str(value))
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, FunctionType) and value.__qualname__.isidentifier() and value.__module__ != "__main__":
        return _called(value, names)
    raise ConfigurationError(f"a {type(value).__name__} cannot be written into recipe.py: make it a dataclass")


def _spell_dataclass(value: Any, names: _Names, depth: int) -> str:
    kind = type(value)
    called = _called(kind, names)
    # the top level is complete, so that a later change of a default cannot change an old run
    shown = [f for f in fields(value) if f.init and (depth == 0 or _is_set(f, getattr(value, f.name)))]
    values = {f.name: getattr(value, f.name) for f in shown}
    values |= {f.name: absolute(values[f.name]) for f in shown if is_path(f) and values[f.name]}
    items = [f"{name}={_spell(each, names, depth + 1)}" for name, each in values.items()]
    return _join(f"{called}(", items, ")", depth)


def _is_set(field: Any, value: Any) -> bool:
    return field.default is MISSING or field.repr


def _join(start: str, items: list[str], end: str, depth: int) -> str:
    line = start + ", ".join(items) + end
    if len(line) + 4 * depth <= _WIDTH and "\n" not in line:
        return line
    indent = "    " * (depth + 1)
    return start + "\n" + "".join(f"{indent}{item},\n" for item in items) + "    " * depth + end.lstrip(",")
