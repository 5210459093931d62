"""Okapi BM25 ranking of a text collection by a query; rare words count more, long texts less."""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

_WORD = re.compile(r"[a-z0-9]+")


@dataclass
class Bm25:
    """score = sum over words of the query of idf * f (k + 1) / (f + k (1 - b + b length / mean length))."""

    texts: Sequence[str]
    k: float = 1.2  # how soon the same word again stops to count
    b: float = 0.75  # how much a text's length counts
    # text and how often, by word
    _places: dict[str, list[tuple[int, int]]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _lengths: list[int] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for number, text in enumerate(self.texts):
            found = words(text)
            self._lengths.append(len(found))
            for word, count in Counter(found).items():
                self._places.setdefault(word, []).append((number, count))

    def scores(self, query: str) -> dict[int, float]:
        """Of every text that has a word of the query, by number."""
        mean, found = sum(self._lengths) / max(len(self._lengths), 1), Counter[int]()
        for word in dict.fromkeys(words(query)):
            places = self._places.get(word, [])
            rare = math.log(1 + (len(self.texts) - len(places) + 0.5) / (len(places) + 0.5))
            for number, count in places:
                norm = self.k * (1 - self.b + self.b * self._lengths[number] / mean)
                found[number] += rare * count * (self.k + 1) / (count + norm)  # type: ignore[assignment]
        return dict(found)

    def best(self, query: str, count: int) -> list[str]:
        """The texts with the highest scores; of equal ones the first."""
        scores = self.scores(query)
        order = heapq.nsmallest(count, scores, key=lambda number: (-scores[number], number))
        return [self.texts[number] for number in order]


def words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
