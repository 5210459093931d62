"""Every small change that can be made to a module: what `tests/mutation.py` tries."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

Found = Iterator[tuple[str, ast.AST]]  # the kind of a change, and what stands there after it

OPPOSITE: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
NAMES = {"min": "max", "minimum": "maximum", "any": "all", "sum": "mean", "amin": "amax", "argmin": "argmax"}
NAMES |= {after: before for before, after in NAMES.items()}
# calls on a value that give it back if they are left out
TRANSPARENT = {"detach", "exp", "log", "abs", "square", "sqrt", "clamp", "clip", "neg"}
# calls whose first two arguments may be exchanged, or that no test should look into
SYMMETRIC = {
    "min",
    "max",
    "minimum",
    "maximum",
    "zip",
    "isinstance",
    "getattr",
    "allclose",
    "isclose",
    "where",
    "sorted",
}


@dataclass(frozen=True)
class Change:
    """One node and what it becomes."""

    before: ast.AST
    after: ast.AST
    what: str
    line: int


def changes(tree: ast.Module) -> list[Change]:
    """All of them, in the order of the tree; messages, annotations and decorators stay."""
    left_alone = {id(node) for node in _left_alone(tree)}
    places = _places(tree)
    found = []
    for node in ast.walk(tree):
        if id(node) not in left_alone:
            for kind, after in _changed(node):
                what = f"{kind}: {_head(node)} -> {_head(ast.fix_missing_locations(after))}"
                if isinstance(node, ast.Constant):
                    what += f" in {places[id(node)]}"
                found.append(Change(node, after, what, getattr(node, "lineno", 0)))
    return found


def with_change(source: str, index: int) -> str:
    """The source with its `index`-th change made."""
    tree = ast.parse(source)
    change = changes(tree)[index]
    return ast.unparse(ast.fix_missing_locations(_Replace(change.before, change.after).visit(tree)))


class _Replace(ast.NodeTransformer):
    def __init__(self, before: ast.AST, after: ast.AST) -> None:
        self.before, self.after = before, after

    def visit(self, node: ast.AST) -> ast.AST:
        return self.after if node is self.before else self.generic_visit(node)


def _head(node: ast.AST) -> str:
    """A whole block is named by its first line."""
    return ast.unparse(node).splitlines()[0]


def _places(tree: ast.Module) -> dict[int, str]:
    """The statement each constant stands in, by the constant's id: a number alone would not tell which one it is."""
    found: dict[int, str] = {}
    for statement in ast.walk(tree):  # outer ones come first and are replaced by inner ones
        if isinstance(statement, ast.stmt):
            found |= {id(node): _head(statement) for node in ast.walk(statement) if isinstance(node, ast.Constant)}
    return found


def _left_alone(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        roots: list[ast.AST | None] = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        roots += getattr(node, "decorator_list", [])
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
            roots.append(node)
        if isinstance(node, ast.keyword) and node.arg == "strict":
            roots.append(node)
        if isinstance(node, ast.Call):  # dimension -1 of a table is dimension 1
            values = [*node.args, *(each.value for each in node.keywords if each.arg == "dim")]
            roots += [each for each in values if ast.unparse(each) == "-1"]
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            roots.append(node)
        for root in roots:
            if root is not None:
                yield from ast.walk(root)


def _changed(node: ast.AST) -> Found:
    match node:
        case ast.BinOp():
            yield from _of_operation(node)
        case ast.BoolOp():
            yield "operator", ast.BoolOp(OPPOSITE[type(node.op)](), node.values)
        case ast.UnaryOp(op=ast.USub() | ast.Not()):
            yield "sign", node.operand
        case ast.Compare(ops=[operator]) if type(operator) in OPPOSITE:
            yield "comparison", ast.Compare(node.left, [OPPOSITE[type(operator)]()], node.comparators)
        case ast.Compare(ops=[ast.Is()]):
            yield "comparison", ast.Compare(node.left, [ast.IsNot()], node.comparators)
        case ast.Compare(ops=[ast.IsNot()]):
            yield "comparison", ast.Compare(node.left, [ast.Is()], node.comparators)
        case ast.Constant(value=bool()):
            yield "truth", ast.Constant(not node.value)
        case ast.Constant(value=int()):
            yield "constant", ast.Constant(node.value + 1)
        case ast.Constant(value=float()):
            yield "constant", ast.Constant(round(node.value * 1.7, 12) if node.value else 0.3)
        case ast.Call():
            yield from _of_call(node)
        case ast.Tuple(ctx=ast.Load()) if any(isinstance(each, ast.Call) for each in node.elts):
            for at in range(len(node.elts)):
                yield "dropped element", ast.Tuple([*node.elts[:at], *node.elts[at + 1 :]], ast.Load())
        case ast.If() if not isinstance(node.test, ast.Compare) and ast.unparse(node.test) != "TYPE_CHECKING":
            yield "condition", ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        case ast.IfExp() if not isinstance(node.test, ast.Compare):
            yield "condition", ast.IfExp(node.test, node.orelse, node.body)


def _of_operation(node: ast.BinOp) -> Found:
    if any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (node.left, node.right)):
        return
    if type(node.op) in OPPOSITE:
        yield "operator", ast.BinOp(node.left, OPPOSITE[type(node.op)](), node.right)
    if isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
        yield "dropped term", node.left


def _is_symmetric(node: ast.Call, name: str) -> bool:
    """np.clip(x, low, high) is min(max(x, low), high); a method has its limits alone."""
    return name in SYMMETRIC or (name == "clip" and len(node.args) == 3)


def _of_call(node: ast.Call) -> Found:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in NAMES:
        other = copy.copy(node.func)
        setattr(other, "attr" if isinstance(other, ast.Attribute) else "id", NAMES[name])
        yield "name", ast.Call(other, node.args, node.keywords)
    if (
        name in TRANSPARENT
        and isinstance(node.func, ast.Attribute)
        and ast.unparse(node.func.value) not in ("np", "torch")
    ):
        yield "dropped call", node.func.value
    for at, keyword in enumerate(node.keywords):
        if keyword.arg not in (None, "strict", "device", "default_factory") and name not in ("field", "dataclass"):
            yield "dropped keyword", ast.Call(node.func, node.args, [*node.keywords[:at], *node.keywords[at + 1 :]])
    plain = [each for each in node.args if not isinstance(each, ast.Starred)]
    if name == "where" and len(plain) == 3 == len(node.args):
        yield "swapped arguments", ast.Call(node.func, [plain[0], plain[2], plain[1]], node.keywords)
    elif (
        len(plain) == len(node.args) >= 2
        and not _is_symmetric(node, name)
        and ast.unparse(plain[0]) != ast.unparse(plain[1])
    ):
        yield "swapped arguments", ast.Call(node.func, [plain[1], plain[0], *plain[2:]], node.keywords)
