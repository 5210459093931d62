"""Batch rows of the CPU engine: their tokens, cached keys, request and order, and what a step computes of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from strop.generate.engines.cpu.kv_cache import Share, keys_read
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
    "snapshot",
)

_MAX_HOLES = 1.25  # rows spanned over rows active before they are moved together
_SWAP_COST = 128  # keys that lining up must save a step for each swap: what it costs, over the steps it lasts
_SHORTEST = 32  # lengths below are alike


class Rows:
    """Rows as arrays, one column per property, so that a step costs a few array operations for any number of rows.

    A row whose request has finished keeps its tokens and keys, as a prefix cache for later requests.
    """

    def __init__(self, count: int, capacity: int, has_states: bool = False) -> None:
        self.capacity = capacity
        self.has_states = has_states  # a prefix then ends only where there is one
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
        self.snapshot: IntArray = np.zeros(count, dtype=np.int64)  # the length at which layers' states are kept

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
        common = self._with_states(common, usable) if self.has_states else common
        row = int((common * 2 + ~self.is_active).argmax())  # among equals a free one: it can perhaps be taken over
        return row, int(common[row])

    def _with_states(self, common: IntArray, usable: IntArray) -> IntArray:
        """As far as a state is there: at a row's snapshot, or at its end until somebody goes on from there."""
        kept = np.where((self.snapshot <= usable) & (self.snapshot <= common), self.snapshot, 0)
        has_end = ~self.is_active & (self.computed <= common)
        return np.maximum(kept, np.where(has_end, np.minimum(self.computed, usable), 0))

    def admit(self, row: int, tokens: IntArray, sampling: Sampling, key: np.uint64, context: int) -> None:
        """Give a row to a request."""
        self.tokens[row, : len(tokens)] = tokens
        self.is_active[row] = True
        self.length[row] = self.prompt[row] = len(tokens)
        self.snapshot[row] = len(tokens) - 1
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


@dataclass
class Work:
    """Tokens of a step: for each row, `counts` tokens from `starts` on."""

    budget: int
    rows: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    shares: list[Share] = field(default_factory=list)

    def share(self, source: int, destination: int, length: int) -> None:
        last = self.shares[-1] if self.shares else None
        if last and (last.source, last.length) == (source, length):
            last.destinations.append(destination)
        else:
            self.shares.append(Share(source, [destination], length))


def moved_together(rows: Rows) -> list[tuple[int, int]]:
    """Fill the holes that finished rows left, once there are so many that reading over them costs more."""
    active = rows.active
    if len(active) == 0 or active[-1] + 1 <= _MAX_HOLES * len(active) + 2:
        return []
    holes = np.flatnonzero(~rows.is_active[: len(active)])
    return list(zip(holes.tolist(), active[len(active) - len(holes) :].tolist(), strict=True))


def lined_up(rows: Rows) -> list[tuple[int, int]]:
    """Put long rows before short ones where that spares attention much reading of short ones' padding."""
    active = rows.active
    lengths = rows.length[active]
    if not (swaps := swaps_of(lengths)):
        return []
    saved = keys_read(active, lengths) - keys_read(active, np.sort(lengths)[::-1])
    return [(int(active[one]), int(active[other])) for one, other in swaps] if saved > _SWAP_COST * len(swaps) else []


def swaps_of(lengths: IntArray) -> list[tuple[int, int]]:
    """Pairs of places to exchange, one after the other, so that classes of length fall; each is twice the next."""
    now = np.ceil(np.log2(np.maximum(lengths, _SHORTEST))).astype(np.int64)
    wanted = np.sort(now)[::-1]
    swaps = []
    for place in range(len(now)):  # in this order: whoever is wanted here is never at an earlier place
        if now[place] < wanted[place]:
            other = int(np.flatnonzero((now == wanted[place]) & (now > wanted))[-1])
            swaps.append((place, other))
            now[[place, other]] = now[[other, place]]
    return swaps
