"""Compact hash table of a few numbers per task: open addressing in arrays, 20 to 60 bytes per task."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
Slots = NDArray[np.int64]
Rows = NDArray[Any]  # of one type that has a field `key` and others

_FULL = 0.7  # share of slots that may be taken before there are twice as many
_SMALLEST = 1024  # slots: a power of 2, as every size
_WINDOW = np.arange(8)  # neighbours that are looked at together
_AT_ONCE = 2**16  # rows that are moved together, which bounds memory while it grows


def keys_of(names: Sequence[str]) -> Keys:
    """64 bits for each name, never 0: among 10 million two are the same with a probability of 3 in a million. [N]"""
    digests = b"".join(hashlib.blake2b(name.encode(), digest_size=8).digest() for name in names)
    return np.maximum(np.frombuffer(digests, dtype="<u8").astype(np.uint64), np.uint64(1))


class TaskTable:
    """Rows by key; untouched keys have no row and read as zeros."""

    def __init__(self, row: np.dtype[Any]) -> None:
        self.row, self.count = row, 0
        self._allocate(_SMALLEST)

    def read(self, keys: Keys) -> dict[str, NDArray[Any]]:
        """The numbers of these keys by name, each [N]; 0 where nobody touched them."""
        slots = self._slots(keys)
        return {name: np.where(self._keys[slots] == keys, column[slots], 0) for name, column in self._columns.items()}

    def write(self, keys: Keys, **values: NDArray[Any] | int) -> None:
        """Set numbers of these keys, each of which may stand here once."""
        new = keys[self._keys[self._slots(keys)] != keys]
        size = len(self._keys)
        while self.count + len(new) > _FULL * size:
            size *= 2
        if size > len(self._keys):
            self._grow(size)
        self._claim(new)
        slots = self._slots(keys)
        for name, value in values.items():
            self._columns[name][slots] = value
        self.count += len(new)

    @property
    def num_bytes(self) -> int:
        return self._keys.nbytes + sum(column.nbytes for column in self._columns.values())

    def rows(self) -> Rows:
        """All that was touched, to be saved; by key, so that the same memory is the same bytes, however it came in."""
        slots = np.flatnonzero(self._keys)
        slots = slots[np.argsort(self._keys[slots])]
        found = np.empty(len(slots), self.row)
        found["key"] = self._keys[slots]
        for name, column in self._columns.items():
            found[name] = column[slots]
        return found

    @classmethod
    def of(cls, rows: Rows) -> TaskTable:
        """The table with these rows."""
        table = cls(rows.dtype)
        for first in range(0, len(rows), _AT_ONCE):
            part = rows[first : first + _AT_ONCE]
            table.write(part["key"], **{name: part[name] for name in table._columns})
        return table

    def _allocate(self, size: int) -> None:
        self._keys: Keys = np.zeros(size, np.uint64)  # 0: free
        fields = [name for name in self.row.names or () if name != "key"]
        self._columns = {name: np.zeros(size, self.row[name]) for name in fields}

    def _grow(self, size: int) -> None:
        keys, columns = self._keys, self._columns
        self._allocate(size)
        taken = np.flatnonzero(keys)
        for first in range(0, len(taken), _AT_ONCE):
            part = taken[first : first + _AT_ONCE]
            slots = self._claim(keys[part])
            for name, column in columns.items():
                self._columns[name][slots] = column[part]

    def _claim(self, keys: Keys) -> Slots:
        """A slot for each; of several that want the same one, all but the last look on."""
        left = keys
        while len(left):
            slots = self._slots(left)
            self._keys[slots] = left
            left = left[self._keys[slots] != left]
        return self._slots(keys)

    def _slots(self, keys: Keys) -> Slots:
        """Where each key stands, or the first free slot that it comes to: [N]."""
        mask = len(self._keys) - 1
        at = (keys & np.uint64(mask)).astype(np.int64)
        slots, left = np.empty(len(keys), np.int64), np.arange(len(keys))
        while len(left):
            window = (at[left, None] + _WINDOW) & mask  # [L, 8]
            held = self._keys[window]
            ends = (held == keys[left, None]) | (held == 0)
            first, is_found = ends.argmax(1), ends.any(1)
            slots[left] = window[np.arange(len(left)), first]
            at[left] += len(_WINDOW)
            left = left[~is_found]
        return slots
