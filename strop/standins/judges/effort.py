"""A judge of effort that is a rule: how many different calculations a completion tries; to be asked by `Procedural`."""

from __future__ import annotations

import re

from strop.text.llm_prompt import parts_of

_STEP = re.compile(r"(?<![^\s<>])[^\s<>=]*=[^\s<>]*")  # from where a word begins
_PLENTY = 5  # different calculations that are all the effort one could wish for


def effort(text: str) -> str:
    """From 0 to 100; the same calculation again is no effort, and whether it holds is not asked."""
    tried = set(_STEP.findall(parts_of(text)["completion"]))
    return f"{100 * min(len(tried) / _PLENTY, 1):g}"
