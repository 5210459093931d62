"""Modules in which mechanisms of a room stand: its own, and the recipes of papers that alone use one."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import strop.recipes


def modules_of(room: ModuleType) -> Iterator[ModuleType]:
    for package in (room, strop.recipes):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".support." not in found.name:
                yield importlib.import_module(found.name)


def kinds_of(room: ModuleType, role: type[Any]) -> list[type]:
    """Every class of this role, where it is made."""
    return [
        kind
        for module in modules_of(room)
        for kind in vars(module).values()
        if isinstance(kind, type) and kind.__module__ == module.__name__ and role in kind.__mro__
    ]
