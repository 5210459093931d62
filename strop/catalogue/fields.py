"""Fields of dataclasses and parameters of recipes, with the comments behind them."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from strop.catalogue.record import PACKAGE

_NO_FIELDS = ("ClassVar", "init=False")  # in an annotation or a default: nothing that could be set


@dataclass(frozen=True)
class WrittenField:
    """Field as it stands in the source."""

    name: str
    default: str  # as Python; empty where there is none
    comment: str


@cache
def class_fields(path: Path, name: str) -> tuple[WrittenField, ...]:
    """The fields of a dataclass, those of dataclasses of the package that it is made from first."""
    text = path.read_text()
    said, tree = _comments(text), ast.parse(text)
    found: dict[str, WrittenField] = {}
    for kind in (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name):
        for base in _bases(kind, tree):
            found |= {field.name: field for field in class_fields(*base)}
        for node in kind.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                default = ast.unparse(node.value) if node.value else ""
                if not any(word in ast.unparse(node) for word in _NO_FIELDS):
                    found[node.target.id] = WrittenField(node.target.id, default, said.get(node.end_lineno or 0, ""))
    return tuple(found.values())


def _bases(kind: ast.ClassDef, tree: ast.Module) -> Iterator[tuple[Path, str]]:
    """Files and names of the dataclasses of the package that it names as its bases."""
    names = [ast.unparse(base) for base in kind.bases]
    for node in (each for each in tree.body if isinstance(each, ast.ImportFrom)):
        path = PACKAGE.parent / f"{(node.module or '').replace('.', '/')}.py"
        wanted = [alias.name for alias in node.names if alias.name in names and path.is_file()]
        kinds = ast.parse(path.read_text()).body if wanted else []
        found = [each for each in kinds if isinstance(each, ast.ClassDef) and each.name in wanted]
        yield from (
            (path, each.name)
            for each in found
            if any("dataclass" in ast.unparse(decorator) for decorator in each.decorator_list)
        )


@cache
def parameters(path: Path, name: str) -> tuple[WrittenField, ...]:
    """The parameters of a function, its setting left out."""
    text = path.read_text()
    said = _comments(text)
    made = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == name]
    return tuple(field for function in made for field in _arguments(function, said) if field.name != "setting")


def _arguments(function: ast.FunctionDef, said: dict[int, str]) -> Iterator[WrittenField]:
    arguments = function.args.args + function.args.kwonlyargs
    defaults = [None] * (len(function.args.args) - len(function.args.defaults)) + function.args.defaults
    for argument, default in zip(arguments, defaults + function.args.kw_defaults, strict=True):
        is_alone = sum(other.lineno == argument.lineno for other in arguments) == 1
        comment = said.get(argument.lineno, "") if is_alone and argument.lineno != function.lineno else ""
        yield WrittenField(argument.arg, ast.unparse(default) if default else "", comment)


def _comments(text: str) -> dict[int, str]:
    """Comments by line, those of the linter left out."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    found = {each.start[0]: each.string.lstrip("# ") for each in tokens if each.type == tokenize.COMMENT}
    return {line: said for line, said in found.items() if not said.startswith(("noqa", "type:", "fmt:"))}


@cache
def recipe_parameters(path: Path) -> tuple[WrittenField, ...]:
    """A recipe's own parameters; one without a comment has that of the field of the same name in a part of it."""
    fields = [*imported_fields(path), *own_fields(path)]
    inside = {field.name: field.comment for field in fields if field.comment}
    return tuple(
        field if field.comment else WrittenField(field.name, field.default, inside.get(field.name, ""))
        for field in parameters(path, path.parent.name if path.stem == "recipe" else path.stem)
    )


def own_fields(path: Path) -> list[WrittenField]:
    """The fields of every class of a file, and of the other files of a paper's folder."""
    files = sorted(path.parent.glob("[!_]*.py")) if path.stem == "recipe" else [path]
    kinds = [
        (each, node.name)
        for each in files
        for node in ast.parse(each.read_text()).body
        if isinstance(node, ast.ClassDef)
    ]
    return [field for each, name in kinds for field in class_fields(each, name)]


def imported_fields(path: Path, package: Path = PACKAGE) -> list[WrittenField]:
    """The fields of every class that a file imports from the package, later imports first."""
    found: list[WrittenField] = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("strop."):
            module = package.parent / f"{(node.module or '').replace('.', '/')}.py"
            if module.is_file():
                found = [field for alias in node.names for field in class_fields(module, alias.name)] + found
    return found


def common_fields(package: Path = PACKAGE) -> dict[str, WrittenField]:
    """The fields of every recipe's setting, and of a run."""
    shared = class_fields(package / "run.py", "Run") + class_fields(package / "recipes" / "setting.py", "Setting")
    return {field.name: field for field in shared}
