"""The defaults and facts of every mechanism, pinned: no recipe's parts tell those of a mechanism that none uses.

The table beside this file (`defaults.json`) holds each class of these rooms in one line; a new one may come in without:
strop.training.losses, strop.training.advantages, strop.training.corrections, strop.training.reductions,
strop.training.values, strop.training.views, strop.training.trainers, strop.training.step_scales, strop.filter.gates,
strop.filter.rewards, strop.replay, strop.environments, strop.generate.strategies,
strop.models, strop.control, strop.control.estimators, strop.control.budgets, strop.control.admission,
strop.control.samplers and strop.control.task_generators ;
to renew it on purpose, and look at what `git diff` says:
python -m tests.test_defaults
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any

ROOMS = (
    *(
        "training.losses",
        "training.advantages",
        "training.corrections",
        "training.reductions",
        "training.values",
        "training.views",
        "training.trainers",
    ),
    *("training.step_scales", "filter.gates", "filter.rewards", "replay", "environments", "models"),
    "generate.strategies",
    "control",
    "recipes",
)
TABLE = Path(__file__).parent / "defaults.json"


def mechanisms() -> Iterator[type]:
    for room in ROOMS:
        package = importlib.import_module(f"strop.{room}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(found.name)
            for kind in vars(module).values():
                if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.__name__:
                    yield kind


def said_of(kind: Any) -> str:
    """Fields with their defaults, then facts that the class itself declares."""
    values = {each.name: _text(default_of(each)) for each in fields(kind) if each.init}
    facts = {
        name: repr(sorted(map(str, value)) if isinstance(value, frozenset) else value)
        for name, value in sorted(vars(kind).items())
        if not name.startswith("_") and name not in values and isinstance(value, str | int | float | frozenset)
    }
    return ", ".join(f"{name}={value}" for name, value in [*values.items(), *facts.items()])


def default_of(field: Field[Any]) -> Any:
    """MISSING where there is none."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def _text(default: Any) -> str:
    return "required" if default is MISSING else repr(default)


def made() -> dict[str, str]:
    return {f"{kind.__module__}.{kind.__name__}": said_of(kind) for kind in mechanisms()}


def test_every_mechanism_has_the_defaults_of_the_table() -> None:
    table, found = json.loads(TABLE.read_text()), made()
    differences = [
        f"{name}\n  table: {said}\n  now:   {found.get(name, '(gone)')}"
        for name, said in table.items()
        if said != found.get(name)
    ]
    assert not differences, "\n".join(differences) + "\nIf this is meant: python -m tests.test_defaults"
    assert len(found) > 250


def test_what_a_mechanism_has_seen_is_no_setting() -> None:
    """Neither asked for, nor told, nor compared."""
    private = [(kind, each) for kind in mechanisms() for each in fields(kind) if each.name.startswith("_")]
    seen = {f"{kind.__name__}.{each.name}": (each.init, each.repr, each.compare) for kind, each in private}
    assert len(seen) > 100 and set(seen.values()) == {(False, False, False)}, seen


if __name__ == "__main__":
    TABLE.write_text(json.dumps(made(), indent=1) + "\n")
