"""Index of contexts whose keys an engine holds since its last weight update."""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field

import numpy as np

from strop.types import IntArray


@dataclass
class KnownContexts:
    """Contexts in order, each with its prompt length: branches of a context share the prompt."""

    _contexts: list[tuple[bytes, int]] = field(default_factory=list)

    def add(self, prompt: IntArray, written: IntArray) -> None:
        """A prompt was read and this was written behind it."""
        _, opening = self._nearest(prompt)
        insort(self._contexts, (np.concatenate([prompt, written]).tobytes(), opening or len(prompt)))

    def shared(self, prompt: IntArray) -> int:
        """Tokens that a prompt has in common with a context, if it goes on from within what was written there."""
        return self._nearest(prompt)[0]

    def clear(self) -> None:
        self._contexts.clear()

    def _nearest(self, prompt: IntArray) -> tuple[int, int]:
        """The most tokens in common, and the length of that opening; (0, 0): it begins anew, or as a sibling does.

        In order, the context that shares most with a text stands beside it.
        """
        name = prompt.tobytes()
        at = bisect_left(self._contexts, (name, 0))
        beside = self._contexts[max(at - 1, 0) : at + 1]
        found = [(_common(prompt, context), opening) for context, opening in beside]
        return max((each for each in found if each[0] > each[1]), default=(0, 0))


def _common(prompt: IntArray, context: bytes) -> int:
    """How many tokens both begin with."""
    tokens = np.frombuffer(context, dtype=np.int64)
    size = min(len(tokens), len(prompt))
    differs = np.flatnonzero(tokens[:size] != prompt[:size])
    return int(differs[0]) if len(differs) else size
