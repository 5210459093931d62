"""Lookup of mechanisms by name (sampler, estimator, reward), with fields parsed from text."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import typing
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

from strop.catalogue.record import PACKAGE
from strop.cli.fields.overrides import convert
from strop.errors import ConfigurationError, nearest

Kind = TypeVar("Kind")


def modules(room: ModuleType, role: type[Any]) -> list[str]:
    """Names of the files and classes of a package and its subpackages, and of recipes' own mechanisms of this role."""
    return list(_by_class(room, role) | _files(room))


def _files(room: ModuleType) -> dict[str, str]:
    found = pkgutil.walk_packages(room.__path__, f"{room.__name__}.")
    return {each.name.rpartition(".")[2]: each.name for each in found if not each.ispkg}


def _by_class(room: ModuleType, role: type[Any]) -> dict[str, str]:
    """Classes of this role in the package and in recipes, with their modules; found in the source, not imported."""
    made = re.compile(rf"^class ([A-Z]\w*)\(.*\b{role.__name__}\b.*\):$", re.MULTILINE)
    root, folders = PACKAGE.parent, (PACKAGE / "recipes", *map(Path, room.__path__))
    return {
        _snake(name): ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for folder in folders
        for path in sorted(folder.rglob("*.py"))
        for name in made.findall(path.read_text())
    }


def _snake(word: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in word).lstrip("_")


def named(room: ModuleType, word: str, role: type[Kind]) -> type[Kind] | None:
    """Mechanism of a package by the name of its file or class."""
    file, classes = _snake(word), _by_class(room, role)
    if file not in (files := _files(room) | classes):
        return None
    module = importlib.import_module(files[file])
    kinds = [kind for kind in vars(module).values() if inspect.isclass(kind) and kind.__module__ == module.__name__]
    chosen = [kind for kind in kinds if role in kind.__mro__ and (file not in classes or _snake(kind.__name__) == file)]
    return cast("type[Kind]", chosen[0])


def values(kind: type[Any], overrides: Mapping[str, str]) -> dict[str, Any]:
    """Fields of a mechanism, parsed from text."""
    types = typing.get_type_hints(kind)
    named = [field.name for field in fields(kind) if field.init]
    for name in overrides:
        if name not in named:
            raise ConfigurationError(f"{kind.__name__} has no field {name!r}: {nearest(name, named)}")
    return {name: convert(text, types[name], name) for name, text in overrides.items()}
