"""Static checks of a chat template: whether its work is bounded by its text and its input, and what it searches for.

A bounded one may be rendered in process: it loops over messages, tools, and calls of a message, and in a loop prints
only pieces of what that loop has at hand; so each piece of the input is written as often as it is mentioned. It has
nothing in which a value could grow: no namespace, macro, product, method or range, and no sum that is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import jinja2
from jinja2 import nodes

_LONGEST, _DEEPEST = 1 << 12, 40  # characters; nodes below one another
_PLAIN = (
    *(nodes.Output, nodes.TemplateData, nodes.Const, nodes.If, nodes.Compare, nodes.Operand, nodes.And, nodes.Or),
    *(nodes.Not, nodes.CondExpr, nodes.List, nodes.Tuple, nodes.Getattr, nodes.Getitem),
)
_FILTERS = ("trim", "length", "string", "default", "upper", "lower", "capitalize", "title", "first", "last")
_TESTS = ("defined", "undefined", "none", "string", "mapping", "iterable", "sequence", "number", "boolean", "true")
_LISTS = ("messages", "tools")
_SHORT = frozenset(("loop", "add_generation_prompt", "bos_token", "eos_token", "raise_exception"))


@lru_cache(maxsize=64)
def is_bounded(template: str) -> bool:
    """Whether every rendering of a template is short, seen from its text."""
    if len(template) > _LONGEST:
        return False
    try:
        parsed = jinja2.Environment(trim_blocks=True, lstrip_blocks=True).parse(template)
    except (jinja2.TemplateError, RecursionError, MemoryError):
        return False
    taken = {each.target.name for each in parsed.find_all(nodes.For) if isinstance(each.target, nodes.Name)}
    kept = {each.name for assign in parsed.find_all(nodes.Assign) for each in assign.target.find_all(nodes.Name)}
    kept |= {each.target.name for each in parsed.find_all(nodes.Assign) if isinstance(each.target, nodes.Name)}
    if kept & (taken | _SHORT | {*_LISTS}) or taken & (_SHORT | {*_LISTS}):
        return False  # a name that means two things
    return all(_is_short(node, 0, None, may_grow=True) for node in parsed.body)


def _is_short(node: nodes.Node, depth: int, known: frozenset[str] | None, may_grow: bool) -> bool:
    """`known`: names that may be read in the innermost loop; None: outside of loops all may be."""
    match node:
        case nodes.For(target=nodes.Name(name=name), recursive=False) if _is_list(node.iter, known):
            known = frozenset((name, *_kept_in(node))) | _SHORT
            return all(_is_short(each, depth + 1, known, may_grow=True) for each in (*node.body, *node.else_)) and (
                node.test is None or _is_short(node.test, depth + 1, known, may_grow=False)
            )
        case nodes.Assign(target=nodes.Name()):
            return _is_short(node.node, depth + 1, known, may_grow=False)
        case nodes.Name(name=name):
            return known is None or name in known
        case nodes.Filter(name="tojson", args=[], kwargs=[]) | nodes.Add() | nodes.Concat() if not may_grow:
            return False
        case nodes.Filter(name="tojson", args=[], kwargs=[]):
            may_grow = False  # of JSON: each time the signs before a quotation mark are doubled
        case nodes.Add() | nodes.Concat():
            pass
        case _ if not (isinstance(node, _PLAIN) or _is_plain_call(node)):
            return False
    below = node.iter_child_nodes()
    return depth < _DEEPEST and all(_is_short(each, depth + 1, known, may_grow) for each in below)


def _kept_in(loop: nodes.For) -> list[str]:
    """Names that are set in a loop, and not in one within it."""
    found: list[str] = []
    waiting = [*loop.body, *loop.else_]
    while waiting:
        node = waiting.pop()
        if isinstance(node, nodes.Assign) and isinstance(node.target, nodes.Name):
            found.append(node.target.name)
        elif not isinstance(node, nodes.For):
            waiting += node.iter_child_nodes()
    return found


def _is_plain_call(node: nodes.Node) -> bool:
    """Filters and tests that make nothing longer, and the call by which a template refuses."""
    match node:
        case nodes.Filter(name=name, args=args, kwargs=keywords):
            return name in _FILTERS and not keywords and (not args or name == "default")
        case nodes.Test(name=name, args=args):
            return name in _TESTS and not args
        case nodes.Call(node=nodes.Name(name="raise_exception"), kwargs=keywords, dyn_args=None, dyn_kwargs=None):
            return not keywords
    return False


def _is_list(node: nodes.Node, known: frozenset[str] | None) -> bool:
    """Messages and tools; in a loop, the calls of what it goes over: its items are of one list each."""
    match node:
        case nodes.Name(name=name):
            return known is None and name in _LISTS
        case nodes.Or(left=left, right=nodes.List(items=[])):
            return _is_list(left, known)
        case (
            nodes.Getitem(node=nodes.Name(name=name), arg=nodes.Const(value="tool_calls"))
            | nodes.Getattr(node=nodes.Name(name=name), attr="tool_calls")
        ):
            return known is not None and name in known
    return False


# Markers that a template searches for in messages, as in `'</think>' in content`.

_TEXT = r"""'[^'\n]+'|"[^"\n]+\""""
_SOUGHT = re.compile(
    rf"(?:[!=]=|\bin|\b(?:r?split|r?partition|replace|startswith|endswith)\()\s*(?P<behind>{_TEXT})"
    rf"|(?P<before>{_TEXT})\s+(?:not\s+)?in\b"
)


def sought(template: str) -> set[str]:
    """The texts that it compares with, searches for or cuts at."""
    return {(found["behind"] or found["before"])[1:-1] for found in _SOUGHT.finditer(template)}


def is_apart(marker: str, tokens: Iterable[str]) -> bool:
    """Whether no text around a marker can make one of these tokens with a part of it."""
    return not any(
        marker in token
        or token in marker
        or any(token.startswith(marker[at:]) or token.endswith(marker[:-at]) for at in range(1, len(marker)))
        for token in tokens
    )
