"""A judge of continuations that is a rule: the words must be the same; to be asked by `Procedural`."""

from __future__ import annotations

from strop.environments.bundled.next_segment import continues
from strop.text.llm_prompt import parts_of


def continued(text: str) -> str:
    """yes or no."""
    parts = parts_of(text)
    following, _, after = parts["answer"].partition("\n")
    return "yes" if continues(parts["completion"], following, after) else "no"
