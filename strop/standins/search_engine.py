"""Rule-based stand-in for an LLM that simulates a search engine over made-up facts: `Procedural(found)`."""

from __future__ import annotations

import hashlib

from strop.environments.tools.bundled_corpus import facts, sentence, subjects, texts
from strop.text.llm_prompt import parts_of


def found(text: str) -> str:
    """The fact that a query asks for; a noisy one is of another body, or any where no fact is asked for."""
    parts = parts_of(text)
    thing, _, body = parts["completion"].partition(" of ")
    if parts["wanted"] == "useful" and (thing, body) in facts():
        return sentence(thing, body, facts()[thing, body])
    drawn = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
    others = [other for other in subjects(thing) if other != body]
    if not others:
        return texts()[drawn % len(texts())]
    other = others[drawn % len(others)]
    return sentence(thing, other, facts()[thing, other])
