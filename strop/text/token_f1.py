"""How much of an answer's words are those of the right one, as questions with short answers are scored."""

from __future__ import annotations

import re
from collections import Counter

_ARTICLES = frozenset(("a", "an", "the"))
_WORD = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """Words in lower case, without articles and punctuation."""
    return [word for word in _WORD.findall(text.lower()) if word not in _ARTICLES]


def token_f1(answer: str, right: str) -> float:
    """Harmonic mean of the share of right words in the answer and the share of the right answer's words given."""
    given, wanted = words_of(answer), words_of(right)
    shared = (Counter(given) & Counter(wanted)).total()
    return 2 * shared / (len(given) + len(wanted)) if shared else 0.0


def contains(text: str, right: str) -> bool:
    """Whether the right answer's words stand in a text, one after the other; parts of words do not count."""
    wanted = " ".join(words_of(right))
    return bool(wanted) and f" {wanted} " in f" {' '.join(words_of(text))} "
