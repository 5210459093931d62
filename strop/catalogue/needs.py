"""Needs of a recipe: what its user brings, and the command of a real run, read from the source without an import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from strop.catalogue.fields import WrittenField, recipe_parameters
from strop.catalogue.record import PACKAGE, Record

_ENDPOINT = "http://HOST:PORT/v1#MODEL"
_RULES = "'rules'"  # default of a part for which a rule stands in on bundled environments


@dataclass(frozen=True)
class Needs:
    """What one recipe takes from outside."""

    of_tasks: tuple[tuple[str, str], ...]  # what an environment must have, and what supplies it
    is_conditional: bool  # some of it depends on fields of the recipe
    is_judged: bool  # rollouts must be known to be right or wrong
    parts: tuple[WrittenField, ...]  # models that it asks: rules stand in for them on bundled environments alone
    required: tuple[WrittenField, ...]  # fields without a default

    def lines(self) -> list[str]:
        """As a list for people."""
        found = ["tasks: `env=FILE.jsonl` (rows with `prompt` and `answer`) or `env=dataset:FOLDER_OR_ID`"]
        depends = ", for some values of its fields" if self.is_conditional else ""
        found += [f"{name}{depends}: {remedy}" for name, remedy in self.of_tasks]
        if self.is_judged:
            found.append("which rollouts are right: answers, or your own reward with `reward_range=LOW,HIGH`")
        found += [f"`{each.name}=`: {each.comment or 'required'}" for each in self.required]
        found += [
            f"`{each.name}={_example(each)}`: {each.comment}; rules stand in on bundled environments alone"
            for each in self.parts
        ]
        return found

    def demonstration(self, name: str) -> str:
        """How a run of the bundled model on bundled tasks begins."""
        return " ".join(["strop train", name, *(f"{each.name}={each.name.upper()}" for each in self.required)])

    def command(self, name: str) -> str:
        """How a run with a user's own model, tasks and parts begins."""
        parts = [f"'{each.name}={_example(each)}'" for each in self.parts]
        return " ".join([self.demonstration(name), "model=FOLDER_OR_ID env=FILE.jsonl", *parts])


def _example(field: WrittenField) -> str:
    """A value of a part's field: an endpoint, or several where it names several models with prices."""
    is_priced = "NAME:PRICE=PART" in field.comment
    return f"small:1={_ENDPOINT},large:4={_ENDPOINT}" if is_priced else _ENDPOINT


def needs_of(record: Record, home: Path, package: Path = PACKAGE) -> Needs:
    """The needs that a recipe's parts declare; `home` is the file of the recipe."""
    texts, judged, conditional = dict[str, str](), False, False
    known = _declared(package)
    for kind in _kinds(home, package):
        names, is_plain = _named(kind)
        texts |= {known[name][0]: known[name][1] for name in names if name in known}
        conditional = conditional or bool(names and not is_plain)
        judged = judged or any(_is_set(node, "needs_success") for node in kind.body)
    fields = recipe_parameters(home)
    parts = tuple(each for each in fields if each.default == _RULES)
    required = tuple(each for each in fields if not each.default)
    return Needs(tuple(texts.items()), conditional, judged, parts, required)


def _kinds(home: Path, package: Path) -> Iterator[ast.ClassDef]:
    """Classes of the recipe's own files, and those that it imports from the package."""
    for path in sorted(home.parent.glob("*.py")) if home.stem in ("recipe", "__init__") else [home]:
        tree = ast.parse(path.read_text())
        yield from (node for node in tree.body if isinstance(node, ast.ClassDef))
        for node in (each for each in tree.body if isinstance(each, ast.ImportFrom)):
            module = package.parent / f"{(node.module or '').replace('.', '/')}.py"
            names = {alias.name for alias in node.names}
            if (node.module or "").startswith("strop.") and module.is_file():
                yield from (kind for kind in _classes(module) if kind.name in names)


@cache
def _classes(path: Path) -> tuple[ast.ClassDef, ...]:
    return tuple(node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef))


def _named(kind: ast.ClassDef) -> tuple[list[str], bool]:
    """Names of the needs that a class lists, and whether it always has them."""
    for node in kind.body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "env_needs" and node.value is not None:
            return _upper(node.value), True
        if isinstance(node, ast.FunctionDef) and node.name == "env_needs":
            return _upper(node), False
    return [], True


def _is_set(node: ast.stmt, name: str) -> bool:
    return (
        isinstance(node, ast.AnnAssign)
        and ast.unparse(node.target) == name
        and ast.unparse(node.value or node) == "True"
    )


def _upper(node: ast.AST) -> list[str]:
    return [each.id for each in ast.walk(node) if isinstance(each, ast.Name) and each.id.isupper()]


@cache
def _declared(package: Path) -> dict[str, tuple[str, str]]:
    """Every need of environments by its name in the source: what it is, and what supplies it."""
    found, path = dict[str, tuple[str, str]](), package / "environments" / "needs.py"
    for node in ast.parse(path.read_text()).body if path.is_file() else ():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and len(node.value.args) > 1:
            name, remedy = (ast.literal_eval(each) for each in node.value.args[:2])
            found[ast.unparse(node.targets[0])] = (name, remedy)
    return found
