"""A judge of visits to a site that is a rule: the answer stands behind what was looked for, on a page that was seen."""

from __future__ import annotations

from itertools import pairwise

from strop.text.llm_prompt import parts_of


def judged_pages(text: str) -> str:
    """SUCCESS or NOT SUCCESS."""
    parts = parts_of(text)
    wanted = parts["task"].removeprefix("find ").partition(":")[0]
    words = parts["other"].split()
    found = [after for word, after in pairwise(words) if word == wanted]
    return "SUCCESS" if parts["completion"] in found else "NOT SUCCESS"
