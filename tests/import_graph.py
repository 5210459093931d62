"""Import graph of the package: which module imports which, and which serve one paper alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from strop.catalogue.record import PACKAGE, records

Graph = Mapping[str, frozenset[str]]  # by module, those that import it


@cache
def modules(package: Path = PACKAGE) -> Mapping[str, Path]:
    """Every module's file by its dotted name."""
    return {_dotted(path, package): path for path in sorted(package.rglob("*.py"))}


def _dotted(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """Modules that a file imports when it runs; imports for types alone do not count."""
    tree = ast.parse(path.read_text())
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)]
    for_types = {id(inner) for block in blocks for inner in ast.walk(block)}
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module in known:
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from inside & known.keys() or {node.module}
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)


@cache
def importers(package: Path = PACKAGE) -> Graph:
    """By module, the modules that import it."""
    known = modules(package)
    found: dict[str, set[str]] = {name: set() for name in known}
    for name, path in known.items():
        for other in imported(path, known):
            found[other].add(name)
    return {name: frozenset(users) for name, users in found.items()}


@cache
def homes(package: Path = PACKAGE) -> Mapping[str, str]:
    """By module of a paper's file or folder, the paper; recipes that are no paper's have their own name."""
    found: dict[str, str] = {}
    for record in records(package).values():
        paper = record.key if record.title else next(iter(record.also), record.key)
        found |= {name: paper for name in modules(package) if f"{name}.".startswith(f"{record.module}.")}
    return found


@cache
def owners(package: Path = PACKAGE) -> Mapping[str, str]:
    """By module, the paper that alone uses it, itself or through other modules; those of many papers are left out."""
    users, found = importers(package), dict(homes(package))
    while new := {
        name: next(iter(papers))
        for name in users.keys() - found.keys()
        if users[name] and len(papers := {found.get(user, "") for user in users[name]}) == 1 and "" not in papers
    }:
        found |= new
    return found
