"""How much of one text stands in another, in the same order."""

from __future__ import annotations

import re

_WORD = re.compile(r"[a-z0-9]+")


def rouge_l(one: str, other: str) -> float:
    """ROUGE-L: twice the longest common subsequence of words over the words of both; 0 where either has none."""
    left, right = _WORD.findall(one.lower()), _WORD.findall(other.lower())
    row = [0] * (len(right) + 1)  # of the words so far, the longest with each beginning of the other text
    for word in left:
        before = 0
        for place, each in enumerate(right, 1):
            before, row[place] = row[place], before + 1 if word == each else max(row[place], row[place - 1])
    return 2 * row[-1] / (len(left) + len(right)) if left and right else 0.0
