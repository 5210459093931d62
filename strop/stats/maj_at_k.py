"""Unbiased maj@k: accuracy of the majority answer of k rollouts (self-consistency, 2203.11171)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

Votes: TypeAlias = Sequence[tuple[int, int]]  # of each different answer: how often it was given, and was right


def majority_at_k(votes: Votes, silent: int, k: int) -> float:
    """Probability that the most frequent answer among k of the rollouts, drawn without replacement, is right.

    Equally frequent answers share the vote; `silent` rollouts gave no answer and have none.
    """
    drawn = silent + sum(times for times, _ in votes)
    won = 0.0
    for place, (times, right) in enumerate(votes):
        others = [other for at, (other, _) in enumerate(votes) if at != place]
        for top in range(1, min(times, k) + 1) if right else ():
            rest = _ways(others, silent, k - top, top)
            shared = sum(ways / (1 + ties) for ties, ways in rest.items())
            won += right / times * math.comb(times, top) * shared
    return won / math.comb(drawn, k)


def _ways(others: Sequence[int], silent: int, k: int, top: int) -> dict[int, int]:
    """In how many ways k more rollouts hold no answer more than `top` times: by how many hold one exactly so often."""
    reached = Counter({(count, 0): math.comb(silent, count) for count in range(min(silent, k) + 1)})
    for times in others:
        following: Counter[tuple[int, int]] = Counter()
        for (count, ties), ways in reached.items():
            for taken in range(min(times, top, k - count) + 1):
                following[count + taken, ties + (taken == top)] += ways * math.comb(times, taken)
        reached = following
    return {ties: ways for (count, ties), ways in reached.items() if count == k}
