"""Markers that a chat template searches for in messages, as in `'</think>' in content`."""

from __future__ import annotations

import re
from collections.abc import Iterable

_TEXT = r"""'[^'\n]+'|"[^"\n]+\""""
_SOUGHT = re.compile(
    rf"(?:[!=]=|\bin|\b(?:r?split|r?partition|replace|startswith|endswith)\()\s*(?P<behind>{_TEXT})"
    rf"|(?P<before>{_TEXT})\s+(?:not\s+)?in\b"
)


def sought(template: str) -> set[str]:
    """The texts that it compares with, searches for or cuts at."""
    return {(found["behind"] or found["before"])[1:-1] for found in _SOUGHT.finditer(template)}


def is_apart(marker: str, tokens: Iterable[str]) -> bool:
    """Whether no text around a marker can make one of these tokens with a part of it."""
    return not any(
        marker in token
        or token in marker
        or any(token.startswith(marker[at:]) or token.endswith(marker[:-at]) for at in range(1, len(marker)))
        for token in tokens
    )
