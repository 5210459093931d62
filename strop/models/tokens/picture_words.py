"""Picture tokens as words below 0: each names a picture by its content and a place in it.

Whatever compares tokens (kept prefixes, shared prefixes, ledgers) tells pictures apart without knowing of them, and no
sampler can draw one. On disk, words are a placeholder and runs of (start, picture, first place, count).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from strop.types import IntArray

MARKER = "<image>"  # in a message's content, where its pictures belong
_PLACES = 16  # bits of a word; the other 47 name the picture: a million pictures collide once in 280 runs
_MOST = 1 << _PLACES
UNSEEN = -1  # stands for a picture's token on disk


def code_of(digest: str) -> int:
    """The 47 bits by which words name a picture."""
    return int(digest[:12], 16) >> 1


def words_of(code: int, count: int) -> IntArray:
    """The tokens of a whole picture: [count]."""
    if not 0 < count <= _MOST:
        raise ValueError(f"a picture has 1 to {_MOST} tokens, got {count}")
    return -1 - ((code << _PLACES) + np.arange(count, dtype=np.int64))


def codes_in(tokens: IntArray) -> IntArray:
    """The picture of each of these words: [N]."""
    return (-1 - tokens) >> _PLACES


def places_in(tokens: IntArray) -> IntArray:
    """The place of each of these words in its picture: [N]."""
    return (-1 - tokens) & (_MOST - 1)


def spans_of(tokens: IntArray) -> IntArray:
    """For each token [..., T] where its picture begins; -1 for text."""
    return np.where(tokens < 0, np.arange(tokens.shape[-1]) - places_in(tokens), -1)


def uncut(tokens: IntArray, count: int) -> int:
    """How many of these tokens come first, about `count`, without a part of a picture."""
    if count >= len(tokens) or tokens[count] >= 0 or (before := int(places_in(tokens[count]))) == 0:
        return count
    text = np.flatnonzero(spans_of(tokens[count:]) != -before)
    return count - before if before < count else count + int(text[0] if len(text) else len(tokens) - count)


def runs_in(tokens: IntArray) -> list[list[int]]:
    """Start, picture, first place and count of each run of consecutive words."""
    places = np.flatnonzero(tokens < 0)
    cuts = np.flatnonzero((np.diff(places) != 1) | (np.diff(tokens[places]) != -1)) + 1
    runs = [run for run in np.split(places, cuts) if len(run)]
    return [
        [int(run[0]), int(codes_in(tokens[run[:1]])[0]), int(places_in(tokens[run[:1]])[0]), len(run)] for run in runs
    ]


def with_runs(tokens: IntArray, runs: Sequence[Sequence[int]]) -> IntArray:
    """Words in the place of placeholders, as `runs_in` found them; ValueError where these do not fit."""
    found = tokens.copy()
    for start, code, first, count in runs:
        is_like = all(type(each) is int and each >= 0 for each in (start, code, first, count))
        if not is_like or not 0 < count <= _MOST - first or code >> 47 or (tokens[start:][:count] != UNSEEN).any():
            raise ValueError(f"{str((start, code, first, count))[:100]} is no run of a picture's tokens")
        if start + count > len(tokens):
            raise ValueError(f"a picture ends at {start + count} in a prompt of {len(tokens)} tokens")
        found[start : start + count] = words_of(code, first + count)[first:]
    return found
