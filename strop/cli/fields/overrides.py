"""Overrides of a run: parameters of its recipe, and nested fields such as `trainer.weight_decay=0.1`."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from strop.cli.fields.text_to_values import describe, read_as
from strop.errors import ConfigurationError, is_known_elsewhere, nearest
from strop.recipes import Recipe, build, parameters_of, recipe_named
from strop.run import Run
from strop.storage.named_files import load_module
from strop.storage.trust import require_trust


def find_recipe(name: str, trust: bool = False) -> Recipe:
    """Recipe of the package by name, or the one in a Python file; a received run folder's needs `trust`."""
    if not name.endswith(".py"):
        return recipe_named(name)
    path = Path(name)
    if not path.is_file():
        raise ConfigurationError(f"there is no recipe file {name}")
    if path.with_name("origin.json").is_file():
        require_trust(path, trust)
    names = vars(load_module(path))
    if isinstance(run := names.get("run"), Run):
        return lambda: run
    made_here = {k: v for k, v in names.items() if inspect.isfunction(v) and v.__module__ == path.stem}
    public = {k: v for k, v in made_here.items() if not k.startswith("_")}
    chosen = public.get(path.stem) or (next(iter(public.values())) if len(public) == 1 else None)
    if chosen is None:
        found = ", ".join(public) or "no function"
        raise ConfigurationError(f"{name} must define `run` (a Run) or a function `{path.stem}`; it defines {found}")
    return chosen


def make_run(recipe: Recipe, overrides: Mapping[str, str]) -> Run:
    """The recipe's run with every override applied."""
    parameters = parameters_of(recipe)
    own = {key: convert(text, parameters[key].type, key) for key, text in overrides.items() if key in parameters}
    run = build(recipe, own)
    if not isinstance(run, Run):
        raise ConfigurationError(f"a recipe must return a Run, this one returned {type(run).__name__}")
    for key, text in overrides.items():
        if key not in parameters:
            _refuse_unknown(key, run, set(parameters))
            run = _changed(run, key.split("."), text, key)
    return run


def _refuse_unknown(key: str, run: Run, parameters: set[str]) -> None:
    known = parameters | {path for path, _ in paths(run)}
    if "envs" in key.split("."):  # several parts share them; a changed copy would differ from the others
        raise ConfigurationError(f"{key} cannot be set: use env=NAME:LEVEL, or choose environments in a recipe file")
    if key in known:
        return
    # a last word suggests its path: `weight_decay` for `trainer.weight_decay`
    inside = sorted(path for path in known if path.rsplit(".", 1)[-1] == key)
    is_path = inside and not is_known_elsewhere(key)
    hint = f"did you mean {' or '.join(inside[:3])}?" if is_path else nearest(key, known)
    raise ConfigurationError(f"recipe {run.recipe} has no field {key!r}: {hint}")


def paths(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every nested field of a run that can be set, with its value."""
    for name, child in _children(value):
        below = f"{path}.{name}" if path else name
        yield below, child
        yield from paths(child, below)


def _children(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, tuple) and any(is_dataclass(item) for item in value):
        return [(str(index), item) for index, item in enumerate(value)]
    if isinstance(value, dict) and all(isinstance(each, str) for pair in value.items() for each in pair):
        return list(value.items())
    if is_dataclass(value) and not isinstance(value, type):
        shown = [field.name for field in fields(value) if field.init and field.name != "envs"]
        return [(name, getattr(value, name)) for name in shown]
    return []


def _changed(value: Any, path: list[str], text: str, key: str) -> Any:
    """Copy of `value` whose field at `path` has the value of the text."""
    name, rest = path[0], path[1:]
    child = dict(_children(value))[name]
    new = _changed(child, rest, text, key) if rest else convert(text, _type_of(value, name, child), key, child)
    if isinstance(value, tuple):
        index = int(name)
        return (*value[:index], new, *value[index + 1 :])
    return {**value, name: new} if isinstance(value, dict) else replace(value, **{name: new})


def _type_of(owner: Any, name: str, value: Any) -> Any:
    """Annotation of a field, or the type of its value if the annotation cannot be resolved."""
    if isinstance(owner, tuple | dict):
        return type(value)
    home = next(kind for kind in type(owner).__mro__ if name in vars(kind).get("__annotations__", {}))
    # resolved alone: names in the other annotations need not be importable
    alone = type(
        name, (), {"__annotations__": {name: vars(home)["__annotations__"][name]}, "__module__": home.__module__}
    )
    try:
        return typing.get_type_hints(alone)[name]
    except NameError:  # annotated with a name that only a type checker imports
        return type(value)


def convert(text: str, kind: Any, key: str, value: Any = None) -> Any:
    """Text as a value of an annotated type."""
    try:
        return read_as(text, kind)
    except ValueError:
        raise ConfigurationError(f"{key} must be {describe(kind)}, got {text!r}") from None
    except TypeError:
        inside = ", ".join(f"{key}.{name}" for name, _ in _children(value))
        now = f" (now {type(value).__name__})" if value is not None else ""
        can = f"set its fields ({inside}) or " if inside else ""
        raise ConfigurationError(f"{key} must be {describe(kind)}{now}: {can}choose it in a recipe file") from None
