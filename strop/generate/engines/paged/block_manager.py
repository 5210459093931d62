"""Page allocator of the KV cache with prefix caching: siblings share prompt pages, unused prefixes stay until evicted.

A page is identified by the hash of all tokens up to its end, so any request finds a cached prefix (vLLM's prefix
caching, Kwon et al., 2309.06180). A hash names a whole page of one weight version; new weights clear them all. Sampled
tokens are hashed only when a later request continues from their prompt: for single-turn rollouts it would be wasted.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from strop.kernels.decode import PAGE
from strop.types import IntArray

_NOTHING: IntArray = np.zeros(0, dtype=np.int64)
_SHORT = b"short:"  # before the tokens of an opening that fills no page and so has no digest
_RUN = 64  # consecutive tokens of a slot that one program of a prefill attends


class Pages:
    """Reference-counted pages; page 0 is never allocated and takes the writes of idle rows."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._holders = [0] * count
        self._free = list(range(count - 1, 0, -1))
        self._digest: dict[int, bytes] = {}  # of pages that can be found
        self._found: dict[bytes, int] = {}
        self._kept: OrderedDict[int, None] = OrderedDict()  # findable and held by nobody, longest unused first
        self._retired: OrderedDict[int, tuple[Sequence[int], IntArray, bytes]] = OrderedDict()  # not digested yet
        self._by_stem: dict[bytes, list[int]] = {}  # of retired ones, by `stem_of` their prompt
        self._short: Counter[int] = Counter()  # lengths of short openings, of retired ones
        self._number = 0

    @property
    def num_available(self) -> int:
        return len(self._free) + len(self._kept)

    def has_room(self, count: int) -> bool:
        """Whether so many can be taken, if need be from those who left."""
        while count > self.num_available and self._retired:
            self._dismiss(next(iter(self._retired)))
        return count <= self.num_available

    def share(self, digests: Sequence[bytes], tokens: IntArray = _NOTHING) -> list[int]:
        """Pages that already hold the longest known beginning of these tokens, now held once more."""
        for stem in self._stems(digests, tokens):
            for number in list(self._by_stem.get(stem, ())):
                left, tokens, _ = self._retired[number]
                self.name(left, digests_of(tokens))
                self._dismiss(number)
        pages: list[int] = []
        for digest in digests:
            if (page := self._found.get(digest)) is None:
                break
            self._holders[page] += 1
            self._kept.pop(page, None)
            pages.append(page)
        return pages

    def take(self, count: int) -> list[int]:
        """Fresh pages for one holder; the caller has looked whether there are enough."""
        pages = []
        for _ in range(count):
            if self._free:
                page = self._free.pop()
            else:
                page, _ = self._kept.popitem(last=False)
                self._unname(page)
            self._holders[page] = 1
            pages.append(page)
        return pages

    def name(self, pages: Sequence[int], digests: Sequence[bytes]) -> None:
        """Let pages be found; one whose content another page already stands for stays unnamed."""
        for page, digest in zip(pages, digests, strict=False):
            if digest not in self._found and page not in self._digest:
                self._found[digest], self._digest[page] = page, digest

    def release(self, pages: Sequence[int]) -> None:
        for page in pages:
            self._holders[page] -= 1
            if self._holders[page] == 0:
                if page in self._digest:
                    self._kept[page] = None
                else:
                    self._free.append(page)

    def retire(self, pages: Sequence[int], tokens: IntArray, stem: bytes) -> None:
        """A holder leaves; what its pages hold is found by whoever goes on from `stem`, while there is room."""
        self._number += 1
        self._retired[self._number] = pages, tokens, stem
        self._by_stem.setdefault(stem, []).append(self._number)
        if length := _short_length(stem):
            self._short[length] += 1

    def forget(self) -> None:
        """No page is found any more; those that nobody holds are free."""
        while self._retired:
            self._dismiss(next(iter(self._retired)))
        self._free.extend(self._kept)
        self._kept.clear()
        self._digest.clear()
        self._found.clear()

    def _dismiss(self, number: int) -> None:
        pages, _, stem = self._retired.pop(number)
        self._by_stem[stem].remove(number)
        if not self._by_stem[stem]:
            del self._by_stem[stem]
        if length := _short_length(stem):
            self._short[length] -= 1
            if not self._short[length]:
                del self._short[length]
        self.release(pages)

    def _stems(self, digests: Sequence[bytes], tokens: IntArray) -> list[bytes]:
        """Openings that these tokens may go on from; who goes on for less than a page could share nothing."""
        if not digests:
            return []
        return [*digests[:-1], *(stem_of(tokens[:length], ()) for length in sorted(self._short))]

    def _unname(self, page: int) -> None:
        del self._found[self._digest.pop(page)]


def stem_of(tokens: IntArray, digests: Sequence[bytes]) -> bytes:
    """What an opening is known by: the digest of its last whole page, or all of it where it fills none."""
    if digests or not len(tokens):
        return digests[-1] if digests else b""
    return _SHORT + np.ascontiguousarray(tokens, dtype=np.int64).tobytes()


def _short_length(stem: bytes) -> int:
    """Tokens of an opening that fills no page; 0: it fills one."""
    return (len(stem) - len(_SHORT)) // 8 if stem.startswith(_SHORT) else 0


def digests_of(tokens: IntArray) -> list[bytes]:
    """One for each whole page of these tokens, of everything up to its end."""
    content = np.ascontiguousarray(tokens, dtype=np.int64)
    found, last = [], b""
    for end in range(PAGE, len(content) + 1, PAGE):
        last = blake2b(last + content[end - PAGE : end].tobytes(), digest_size=16).digest()
        found.append(last)
    return found


def pages_for(tokens: int) -> int:
    return -(-tokens // PAGE)


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
