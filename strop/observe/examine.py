"""Health check of a run: the findings of each rule of `health/` on its history."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import cast

from strop.observe import health
from strop.observe.health import HealthFinding
from strop.observe.run_files.run_history import History, read_history
from strop.roles import HealthRule
from strop.storage.run_folder import RunFolder


def rules() -> list[HealthRule]:
    """One of each, in the order of their files."""
    names = sorted(f"{health.__name__}.{each.name}" for each in pkgutil.iter_modules(health.__path__))
    return [rule for name in names for rule in _rules_of(name)]


def _rules_of(module: str) -> list[HealthRule]:
    kinds = [kind for kind in vars(importlib.import_module(module)).values() if inspect.isclass(kind)]
    return [cast("HealthRule", kind()) for kind in kinds if kind.__module__ == module and HealthRule in kind.__mro__]


def judged(history: History) -> list[HealthFinding]:
    """What is wrong, the grave things first."""
    found = [finding for rule in rules() if (finding := rule.judge(history)) is not None]
    return sorted(found, key=lambda finding: not finding.is_grave)


def examine(folder: RunFolder) -> list[HealthFinding]:
    """What is wrong with a run, from what it left on disk."""
    return judged(read_history(folder))
