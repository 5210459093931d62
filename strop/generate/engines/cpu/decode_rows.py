"""Batch rows of the CPU engine: tokens, number of cached keys, and the request of each row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from strop.types import FloatArray, IntArray, Sampling

_PER_TOKEN = ("tokens", "logprobs", "versions")
_PER_ROW = (
    "is_active",
    "length",
    "computed",
    "planned",
    "prompt",
    "limit",
    "epoch",
    "used",
    "key",
    "temperature",
    "top_k",
    "top_p",
    "has_strings",
    "is_truncated",
    "lender",
    "shared",
)


class Rows:
    """Rows as arrays, one column per property, so that a step costs a few array operations for any number of rows.

    A row whose request has finished keeps its tokens and keys, as a prefix cache for later requests.
    """

    def __init__(self, count: int, capacity: int) -> None:
        self.capacity = capacity
        self.tokens: IntArray = np.zeros((count, capacity), dtype=np.int64)
        self.logprobs: FloatArray = np.zeros((count, capacity), dtype=np.float32)
        self.versions: IntArray = np.zeros((count, capacity), dtype=np.int64)
        self.is_active: NDArray[np.bool_] = np.zeros(count, dtype=np.bool_)
        self.length: IntArray = np.zeros(count, dtype=np.int64)  # tokens known
        self.computed: IntArray = np.zeros(count, dtype=np.int64)  # of them, those with keys
        self.planned: IntArray = np.zeros(count, dtype=np.int64)  # those with keys once the coming step is done
        self.prompt: IntArray = np.zeros(count, dtype=np.int64)
        self.limit: IntArray = np.zeros(count, dtype=np.int64)  # the length to stop at
        self.epoch: IntArray = np.zeros(count, dtype=np.int64)  # of the weights behind the keys
        self.used: IntArray = np.zeros(count, dtype=np.int64)  # the step that last needed the row
        self.key: NDArray[np.uint64] = np.zeros(count, dtype=np.uint64)
        self.temperature: FloatArray = np.ones(count, dtype=np.float32)
        self.top_k: IntArray = np.zeros(count, dtype=np.int64)
        self.top_p: FloatArray = np.ones(count, dtype=np.float32)
        self.has_strings: NDArray[np.bool_] = np.zeros(count, dtype=np.bool_)
        self.is_truncated: NDArray[np.bool_] = np.zeros(count, dtype=np.bool_)  # by top-k or top-p
        self.lender: IntArray = np.arange(count)  # the row that has the same first keys,
        self.shared: IntArray = np.zeros(count, dtype=np.int64)  # this many

    @property
    def active(self) -> IntArray:
        return np.flatnonzero(self.is_active)

    @property
    def num_free(self) -> int:
        return len(self.is_active) - int(self.is_active.sum())

    def grow(self, capacity: int) -> None:
        """Make room for longer sequences."""
        extra = ((0, 0), (0, capacity - self.capacity))
        for name in _PER_TOKEN:
            setattr(self, name, np.pad(getattr(self, name), extra))
        self.capacity = capacity

    def swap(self, one: int, other: int) -> None:
        for name in (*_PER_TOKEN, *_PER_ROW):
            column = getattr(self, name)
            column[[one, other]] = column[[other, one]]

    def least_recent(self) -> int:
        """The free row that was needed longest ago."""
        return int(np.where(self.is_active, np.iinfo(np.int64).max, self.used).argmin())

    def longest_prefix(self, tokens: IntArray, epoch: int) -> tuple[int, int]:
        """The row that shares most of these tokens with keys of this epoch, and how many; the last token never counts.

        The last one must be computed in any case, because its logits are what the next is drawn from.
        """
        usable = np.where(self.epoch == epoch, self.planned, 0)
        longest = min(len(tokens) - 1, int(usable.max()))
        if longest <= 0:
            return 0, 0
        differs = self.tokens[:, :longest] != tokens[:longest]
        common = np.minimum(np.where(differs.any(1), differs.argmax(1), longest), usable)
        row = int((common * 2 + ~self.is_active).argmax())  # among equals a free one: it can perhaps be taken over
        return row, int(common[row])

    def admit(self, row: int, tokens: IntArray, sampling: Sampling, key: np.uint64, context: int) -> None:
        """Give a row to a request."""
        self.tokens[row, : len(tokens)] = tokens
        self.is_active[row] = True
        self.length[row] = self.prompt[row] = len(tokens)
        self.limit[row] = min(len(tokens) + sampling.max_tokens, context)
        self.key[row] = key
        self.temperature[row] = sampling.temperature
        self.top_k[row] = sampling.top_k
        self.top_p[row] = sampling.top_p
        self.has_strings[row] = bool(sampling.stop)
        self.is_truncated[row] = sampling.temperature != 0 and (sampling.top_k > 0 or sampling.top_p < 1)

    def lend(self, source: int, row: int, length: int) -> None:
        """A row begins with the first keys of another, or goes on behind its own; what others had beyond is gone."""
        kept = length if source == row else 0
        borrowers = self.lender == row
        self.shared[borrowers] = np.minimum(self.shared[borrowers], kept)
        if source != row:
            # siblings all read the first one's, which is then in the cache
            self.lender[row] = self.lender[source] if length <= self.shared[source] else source
        self.shared[row] = min(int(self.shared[row]), length) if source == row else length

    def append(self, rows: IntArray, tokens: IntArray, logprobs: FloatArray, version: int) -> None:
        """One more token for each of these rows."""
        at = self.length[rows]
        self.tokens[rows, at] = tokens
        self.logprobs[rows, at] = logprobs
        self.versions[rows, at] = version
        self.length[rows] = at + 1
