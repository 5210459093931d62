"""Metric as a function of sampled tokens: area under the curve, and tokens to a target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from strop.storage.run_folder import RunFolder, read_rows

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


def mean_curve(found: Sequence[Curve]) -> Curve:
    """Of several runs: their mean at all tokens where one of them was measured, as far as all of them went."""
    end = min(tokens[-1] for tokens, _ in found)
    places = sorted({token for tokens, _ in found for token in tokens if token <= end})
    return places, np.mean([np.interp(places, tokens, values) for tokens, values in found], axis=0).tolist()


def share_of_tokens(found: Curve, other: Curve) -> float | None:
    """How many tokens it took to come as high as the other one ends, as a share of what that took; None: never."""
    taken = tokens_to(found, other[1][-1])
    return None if taken is None else taken / other[0][-1]
