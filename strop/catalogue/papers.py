"""Index of papers: records of recipes, joined with mechanisms, tests and measured effects.

A mechanism's docstring says `Papers: key`. A recipe belongs to a paper if its name is the paper's key, or if it names
the paper in the same way. Mechanisms that every run uses belong to no recipe. The mechanism of a paper that is a
setting of existing parts is its recipe.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strop.catalogue.choice import effects, summary_of
from strop.catalogue.record import PACKAGE, Record, docstring_of, keys_in, labelled, records


@dataclass(frozen=True)
class Paper:
    """Paper with its recipe, mechanisms, tests and effects; `tests` is None where none are installed."""

    record: Record
    mechanisms: tuple[str, ...]
    recipes: tuple[str, ...]
    tests: tuple[str, ...] | None
    effect: dict[str, Any] | None

    @property
    def key(self) -> str:
        return self.record.key

    def as_json(self) -> dict[str, Any]:
        """The fields other programs may rely on."""
        record = self.record
        about = {"key": self.key, "class": record.group, "title": record.title, "claim": record.claim}
        return about | {
            "mechanisms": self.mechanisms,
            "recipes": self.recipes,
            "tests": self.tests,
            "effect": self.effect,
        }


def find_papers(package: Path = PACKAGE) -> list[Paper]:
    """Every paper that a recipe is the home of, by key."""
    recipes = records(package)
    mechanisms = named_papers(package)
    tests = read_tests(package.parent) if is_checkout(package.parent) else None
    homes = sorted((each for each in recipes.values() if each.title), key=lambda each: each.key)
    return [_paper(home, recipes, mechanisms, tests, package.parent) for home in homes]


def is_checkout(root: Path) -> bool:
    """Tests and effects lie beside the package in a checkout; an installed package has none."""
    return (root / "pyproject.toml").is_file() and (root / "tests").is_dir()


def named_papers(package: Path = PACKAGE) -> dict[str, tuple[str, ...]]:
    """Modules of mechanisms that name papers, with the keys."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        if parts[1] in ("recipes", "catalogue") or "Papers:" not in path.read_text():
            continue
        if keys := keys_in(labelled(docstring_of(path))):
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = keys
    return found


def read_tests(root: Path) -> dict[str, set[str]]:
    """By test file what it is about: modules of the package that it names, and recipes that it builds by their name."""
    return {
        str(path.relative_to(root)): _named_in(path.read_text()) for path in sorted(root.glob("tests/**/test_*.py"))
    }


def _named_in(test: str) -> set[str]:
    paths = {tuple(path.split(".")) for path in re.findall(r"\bstrop(?:\.\w+)+", test)}
    modules = {".".join(path[:length]) for path in paths for length in range(2, len(path) + 1)}
    return modules | set(re.findall(r'"(\w+)(?=")', test) if "recipe_named" in test else ())


def _paper(
    home: Record,
    recipes: Mapping[str, Record],
    mechanisms: Mapping[str, tuple[str, ...]],
    tests: dict[str, set[str]] | None,
    root: Path,
) -> Paper:
    own = [each.module for each in recipes.values() if each is home or home.key in each.also]
    parts = [module for module, keys in mechanisms.items() if home.key in keys] or own
    about = {*parts, home.name}
    tested = None if tests is None else tuple(name for name, named in tests.items() if about & named)
    return Paper(home, tuple(parts), tuple(own), tested, read_effect(root / "effects", home.key))


def read_effect(folder: Path, key: str) -> dict[str, Any] | None:
    """The summary of an experiment's committed result; where no results lie beside the package, the package's own."""
    path = folder / "results" / f"{key}.json"
    if not is_checkout(folder.parent):
        return effects().get(key)
    return summary_of(json.loads(path.read_text())) if path.is_file() else None


def homeless(package: Path = PACKAGE) -> dict[str, str]:
    """Keys that a docstring names and no recipe is the home of, with a module that names them."""
    recipes = records(package)
    known = {each.key for each in recipes.values() if each.title}
    named = [(key, module) for module, keys in named_papers(package).items() for key in keys]
    named += [(key, each.module) for each in recipes.values() for key in each.also]
    return {key: module for key, module in named if key not in known}
