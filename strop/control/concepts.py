"""What problems are about: how often concepts were needed, alone and together, and which to combine next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from strop.control.seeded_choice import softmax

_MOST = 1000  # concepts that are known; those that came first stay


@dataclass
class Concepts:
    """The first concept by how often it was needed, the next ones by how often together with those chosen."""

    counts: dict[str, int] = field(default_factory=dict)
    pairs: dict[str, int] = field(default_factory=dict)  # of two, in the order of letters, joined by a tab

    def add(self, needed: Sequence[str]) -> None:
        known = [each for each in dict.fromkeys(needed) if each in self.counts or len(self.counts) < _MOST]
        for each in known:
            self.counts[each] = self.counts.get(each, 0) + 1
        for pair in (_pair(*two) for two in combinations(known, 2)):
            self.pairs[pair] = self.pairs.get(pair, 0) + 1

    def draw(self, count: int, temperature: float, key: int) -> list[str]:
        """So many different ones, or all there are: shares of the counts, then softmax(together / temperature)."""
        stream, left = np.random.default_rng(key), list(self.counts)
        chosen: list[str] = []
        while left and len(chosen) < count:
            weights = softmax([self._together(each, chosen) for each in left], temperature) if chosen else None
            if weights is None:
                weights = np.array([self.counts[each] for each in left], dtype=np.float64)
                weights /= weights.sum()
            chosen.append(left.pop(int(stream.choice(len(left), p=weights))))
        return chosen

    def _together(self, one: str, others: Sequence[str]) -> float:
        return float(sum(self.pairs.get(_pair(one, other), 0) for other in others))

    def state(self) -> dict[str, Any]:
        return {"counts": dict(self.counts), "pairs": dict(self.pairs)}


def _pair(one: str, other: str) -> str:
    return "\t".join(sorted((one, other)))
