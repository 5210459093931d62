"""Parts of a room by name, with fields from text."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import typing
from collections.abc import Mapping
from dataclasses import fields
from types import ModuleType
from typing import Any, TypeVar, cast

from strop.cli.overrides import convert
from strop.errors import ConfigurationError, nearest

Kind = TypeVar("Kind")


def modules(room: ModuleType) -> list[str]:
    """The names of its files, those of rooms within it too."""
    return list(_files(room))


def _files(room: ModuleType) -> dict[str, str]:
    found = pkgutil.walk_packages(room.__path__, f"{room.__name__}.")
    return {each.name.rpartition(".")[2]: each.name for each in found if not each.ispkg}


def named(room: ModuleType, word: str, role: type[Kind]) -> type[Kind] | None:
    """A part of a room by the name of its file or of its class."""
    file = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in word).lstrip("_")
    if file not in (files := _files(room)):
        return None
    module = importlib.import_module(files[file])
    kinds = [kind for kind in vars(module).values() if inspect.isclass(kind) and kind.__module__ == module.__name__]
    return next(cast("type[Kind]", kind) for kind in kinds if role in kind.__mro__)


def values(kind: type[Any], overrides: Mapping[str, str]) -> dict[str, Any]:
    """Fields of a part from text."""
    types = typing.get_type_hints(kind)
    named = [field.name for field in fields(kind) if field.init]
    for name in overrides:
        if name not in named:
            raise ConfigurationError(f"{kind.__name__} has no field {name!r}: {nearest(name, named)}")
    return {name: convert(text, types[name], name) for name, text in overrides.items()}
