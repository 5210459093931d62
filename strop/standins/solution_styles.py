"""Rule-based stand-ins for teachers that solve sums in different styles; called through `Procedural`."""

from __future__ import annotations

import re

from strop.environments.format.think_tags import sum_steps, think

_SUM = re.compile(r"\d{1,9}(?:\+\d{1,9}){1,15}(?==\?)")


def backward(question: str) -> str:
    """From the last term to the first."""
    return _worked(terms_in(question)[::-1])


def largest_first(question: str) -> str:
    """In the order of size."""
    return _worked(sorted(terms_in(question), reverse=True))


def brief(question: str) -> str:
    """The last step alone."""
    steps, total = sum_steps(terms_in(question))
    return think(steps[-1:], str(total))


def _worked(terms: list[int]) -> str:
    steps, total = sum_steps(terms)
    return think(steps, str(total))


def terms_in(question: str) -> list[int]:
    """The numbers to add."""
    found = _SUM.search(question)
    if not found:
        raise ValueError(f"not a sum: {question[:80]!r}")
    return [int(term) for term in found.group().split("+")]
