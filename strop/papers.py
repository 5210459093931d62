"""Which published mechanisms are here: docstrings say `Papers: key`, and this reads the tree."""

from __future__ import annotations

import ast
import csv
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent
_KEYS = re.compile(r"^Papers:\s*(.+?)\.?\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Paper:
    """A listed paper and what exists of it."""

    key: str
    title: str
    mechanisms: tuple[str, ...]
    recipes: tuple[str, ...]
    tests: tuple[str, ...]
    effect: dict[str, Any] | None


@dataclass(frozen=True)
class Module:
    """A module of the package: its dotted name, the papers its docstring names, what it imports and defines."""

    name: str
    keys: frozenset[str]
    imports: frozenset[str]
    functions: frozenset[str]

    @property
    def is_recipe(self) -> bool:
        """A recipe is a function named like its file."""
        return ".recipes." in self.name and self.name.rpartition(".")[2] in self.functions


def find_papers(package: Path = PACKAGE, checkout: Path | None = None) -> list[Paper]:
    """Every listed paper, joined with the modules, recipes, tests and results that exist.

    Tests and results lie beside the package in a checkout and are missing from an installed one.
    """
    root = package.parent if checkout is None else checkout
    modules = [read_module(path, package) for path in sorted(package.rglob("*.py"))]
    tests = {str(path.relative_to(root)): path.read_text() for path in sorted(root.glob("tests/**/test_*.py"))}
    return [_paper(row["key"], row["title"], modules, tests, root) for row in listed(package / "papers.tsv")]


def listed(table: Path) -> list[dict[str, str]]:
    """The rows of papers.tsv."""
    with table.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def read_module(path: Path, package: Path) -> Module:
    """What a source file says about itself, read without importing it."""
    tree = ast.parse(path.read_text())
    parts = path.relative_to(package.parent).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    named = _KEYS.findall(ast.get_docstring(tree) or "")
    keys = frozenset(key.strip() for line in named for key in line.split(",") if key.strip())
    functions = frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    return Module(name, keys, frozenset(_imports(tree)), functions)


def _imports(tree: ast.Module) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return found


def _paper(key: str, title: str, modules: list[Module], tests: dict[str, str], root: Path) -> Paper:
    mechanisms = [module.name for module in modules if key in module.keys and ".recipes." not in module.name]
    recipes = [
        module.name
        for module in modules
        if module.is_recipe and (key in module.keys or not _reach(module, modules).isdisjoint(mechanisms))
    ]
    tested = [name for name, text in tests.items() if any(re.search(rf"\b{re.escape(m)}\b", text) for m in mechanisms)]
    return Paper(key, title, tuple(mechanisms), tuple(recipes), tuple(tested), read_effect(root / "effects", key))


def _reach(recipe: Module, modules: list[Module]) -> set[str]:
    """What a recipe imports, itself or through what all recipes share (`recipes/setting.py`)."""
    shared = [m for m in modules if ".recipes." in m.name and not m.is_recipe and m.name in recipe.imports]
    return set(recipe.imports).union(*(module.imports for module in shared))


def read_effect(folder: Path, key: str) -> dict[str, Any] | None:
    """The summary of an experiment's committed result."""
    path = folder / "results" / f"{key}.json"
    if not path.is_file():
        return None
    result = json.loads(path.read_text())
    shown = ("claim", "verdict", "metric", "difference", "low", "high", "seeds", "date")
    return {name: result[name] for name in shown if name in result}


def unlisted(package: Path = PACKAGE) -> dict[str, str]:
    """Keys that a docstring names and papers.tsv does not, with the module that names them."""
    known = {row["key"] for row in listed(package / "papers.tsv")}
    modules = [read_module(path, package) for path in sorted(package.rglob("*.py"))]
    return {key: module.name for module in modules for key in sorted(module.keys - known)}
