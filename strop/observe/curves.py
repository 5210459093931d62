"""A figure of a run over the tokens it had sampled: how high it was on the way, and when it got somewhere."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TypeAlias

from strop.disk.folder import RunFolder, read_rows

Curve: TypeAlias = tuple[list[float], list[float]]  # generated tokens, and values at them


def curve(folder: RunFolder, metric: str) -> Curve:
    """A metric of a run over the tokens it had generated."""
    spent, tokens, values = 0.0, list[float](), list[float]()
    for row in read_rows(folder.metrics):
        spent = float(row.get("tokens_generated", spent))
        if metric in row and math.isfinite(row[metric]):
            tokens.append(spent)
            values.append(float(row[metric]))
    return tokens, values


def area(found: Curve) -> float:
    """The mean height of a curve over its tokens: who gets somewhere early has more of it than who gets there late."""
    tokens, values = found
    if len(tokens) < 2 or tokens[-1] <= tokens[0]:
        return values[-1] if values else math.nan
    pieces = zip(tokens, tokens[1:], values, values[1:], strict=False)
    whole = sum((right - left) * (low + high) / 2 for left, right, low, high in pieces)
    return whole / (tokens[-1] - tokens[0])


def tokens_to(found: Curve, target: float) -> float | None:
    """How many tokens it took to get so high, on a straight line between two values; None: it never did."""
    tokens, values = found
    if values and values[0] >= target:
        return tokens[0]
    for (left, low), (right, high) in pairwise(zip(tokens, values, strict=True)):
        if high >= target:
            return left + (right - left) * (target - low) / (high - low)
    return None
