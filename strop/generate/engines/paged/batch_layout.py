"""Packing of slots and tokens into the tensors of one GPU pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from strop.types import IntArray

_RUN = 64  # consecutive tokens of a slot that one program of a prefill attends


def padded(rows: Sequence[Sequence[int] | IntArray]) -> NDArray[np.int32]:
    """[N, longest] int32, zeros behind."""
    found = np.zeros((len(rows), max(map(len, rows))), np.int32)
    for into, row in zip(found, rows, strict=True):
        into[: len(row)] = row
    return found


def runs_of(starts: IntArray, counts: IntArray) -> IntArray:
    """First packed token, its position and count of each stretch of at most `_RUN` tokens: [N, 3]."""
    firsts = np.cumsum(counts) - counts
    pieces = -(-counts // _RUN)
    owner = np.repeat(np.arange(len(counts)), pieces)
    offset = (np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)) * _RUN
    runs = np.stack((firsts[owner] + offset, starts[owner] + offset, np.minimum(counts[owner] - offset, _RUN)), 1)
    return runs.astype(np.int32)


def bucket(count: int, most: int) -> int:
    """Rows of a step: powers of two and halfway between, so that few graphs serve all counts and little is in vain."""
    size = 1
    while size < count:
        size *= 2
    between = size * 3 // 4
    return min(most, between if between >= count and size > 2 else size)
