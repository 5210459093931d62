"""Functions of a user's own Python file, named as FILE.py:FUNCTION."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from strop.errors import ConfigurationError, nearest


def loaded(path: str) -> Callable[..., Any]:
    """The function that `file.py:function` names; its file is executed."""
    file, _, name = path.rpartition(":")
    members = vars(_module(Path(file)))
    if not callable(members.get(name)):
        hint = nearest(name, [each for each in members if not each.startswith("_")])
        raise ConfigurationError(f"{path}: the file has no function {name}; {hint}")
    function: Callable[..., Any] = members[name]
    return function


def parsed(file: Path, function: str) -> ast.Module:
    """Syntax tree of a file; one that is no Python or has no such function is refused without running it."""
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except SyntaxError as error:
        raise ConfigurationError(f"{file}, line {error.lineno} is no valid Python: {error.msg}") from None
    except ValueError as error:
        raise ConfigurationError(f"{file} is no valid Python: {error}") from None
    defined = [each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    if function not in defined and not _may_bind(tree, function):
        raise ConfigurationError(f"{file} has no function {function}; {nearest(function, defined)}")
    return tree


def _may_bind(tree: ast.Module, name: str) -> bool:
    """Whether anything but a plain function could have this name: a class, an import, an assignment."""
    nodes = list(ast.walk(tree))
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)}
    imported = {alias.asname or alias.name.split(".")[0] for node in nodes for alias in _aliases(node)}
    return name in bound | imported or "*" in imported


def _aliases(node: ast.AST) -> list[ast.alias]:
    return node.names if isinstance(node, ast.Import | ast.ImportFrom) else []


def _module(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"strop_own_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"need a Python file (*.py), got {file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module
