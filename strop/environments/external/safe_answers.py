"""Allow-list of answers that may reach reasoning-gym scorers that evaluate them as Python.

Nine scorers call `eval` or sympy's `parse_expr`, which is an `eval` too, on model output. An answer reaches them only
if it consists of the words and symbols of which right answers are made; these include no name whose call has an effect,
no attribute and no statement.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_LONGEST = 100_000  # characters; a matrix of 100 x 100 as a list of lists has 30,000
_LONGEST_FORMULA = 10_000
_MATRIX = r"[0-9]+|[-\[\], \n]"
_LETTERS = r"[A-E]+|['\"\[\], ]"
_BOARD = r"[_Q]+|['\"\[\], \n]"
# neither powers, which grow without bound, nor floor division: the questions allow + - * /
_ARITHMETIC = r"[0-9]+|\*(?!\*)|/(?!/)|[-+() ]"
_ALGEBRA = r"[0-9]+(?:\.[0-9]+)?|[-+*/() ]"
# `Integral` is no answer to an integral, though it stands in a few of the package's own
_FUNCTIONS = ("C", "E", "pi", "exp", "log", "ln", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "Abs")

_TOKENS = {
    "spiral_matrix": _MATRIX,
    "binary_matrix": _MATRIX,
    "string_insertion": _LETTERS,
    "n_queens": _BOARD,
    "countdown": _ARITHMETIC,
    "puzzle24": _ARITHMETIC,
}
_FORMULAS: Mapping[str, tuple[str, ...]] = {
    "polynomial_multiplication": (),
    "simple_integration": _FUNCTIONS,
    "intermediate_integration": _FUNCTIONS,
}
EVALUATED = frozenset(_TOKENS) | frozenset(_FORMULAS)


def is_plain(answer: str, metadata: Mapping[str, Any]) -> bool:
    """Whether the scorer behind an item may see this answer; `metadata` is the item's own."""
    dataset = metadata["source_dataset"]
    if dataset in _TOKENS:
        return len(answer) <= _LONGEST and _consists_of(_TOKENS[dataset], answer.strip())
    if dataset in _FORMULAS:
        words = "|".join(map(re.escape, (*_variables(metadata), *_FORMULAS[dataset])))
        return len(answer) <= _LONGEST_FORMULA and _consists_of(rf"{_ALGEBRA}|\b(?:{words})\b", answer.strip())
    return True


def _consists_of(token: str, text: str) -> bool:
    """Whether nothing is left when all tokens are taken out, in one pass."""
    return text.isascii() and not re.sub(token, "", text)


def _variables(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(map(str, metadata.get("variables") or (metadata["variable"],)))
