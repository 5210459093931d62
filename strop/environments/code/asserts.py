"""Assert lines and check functions, read as expressions and the literals that they should equal."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence
from typing import Any


def compared(code: str, function: str) -> tuple[str, list[tuple[str, Any]]]:
    """The function that is tested, and source and value of each assert; no pairs where code does more than compare.

    ValueError says what is missing.
    """
    tree = ast.parse(code)
    asserts = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    if not asserts:
        raise ValueError("no assert stands there")
    if not function and any(map(_is_check, tree.body)):
        raise ValueError("check(candidate) needs a column `entry_point` with the name of the function")
    tested = function or _called(asserts)
    return tested, _simple(tree, tested)


def _simple(tree: ast.Module, function: str) -> list[tuple[str, Any]]:
    """Source and value of each assert, where all of them compare an expression with a literal; else none."""
    body = list[ast.stmt]()
    for node in tree.body:
        body += node.body if isinstance(node, ast.FunctionDef) and _is_check(node) else [node]
    found: list[tuple[str, Any]] = []
    for node in body:
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Constant):
            continue
        if isinstance(node, ast.Assert) and (pair := _compared(node.test, function)) is not None:
            found.append(pair)
        elif not _is_idle(node):
            return []
    return found


def _is_check(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == "check" and len(node.args.args) == 1


def _is_idle(node: ast.stmt) -> bool:
    """Whether a statement beside the asserts changes nothing: a text, `pass`, HumanEval's METADATA, a call of check."""
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)] == ["METADATA"]
    is_call = (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "check"
    )
    return (
        isinstance(node, ast.Pass) or is_call or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    )


class _Renamed(ast.NodeTransformer):
    """`candidate` by the name of the function."""

    def __init__(self, function: str) -> None:
        self.function = function

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.function, node.ctx) if node.id == "candidate" else node


def _compared(test: ast.expr, function: str) -> tuple[str, Any] | None:
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.Is)):
        return None
    for asked, due in ((test.left, test.comparators[0]), (test.comparators[0], test.left)):
        try:
            value = ast.literal_eval(due)
        except ValueError:
            continue
        if any(isinstance(node, ast.Call) for node in ast.walk(asked)):
            return ast.unparse(_Renamed(function).visit(asked)), value
    return None


def _called(asserts: Sequence[ast.Assert]) -> str:
    """The function that assert lines are about: the first that is called and is none of Python's own."""
    calls = [node.func for each in asserts for node in ast.walk(each) if isinstance(node, ast.Call)]
    names = [call.id for call in calls if isinstance(call, ast.Name) and call.id not in dir(builtins)]
    return next(iter(names), "")
