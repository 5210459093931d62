"""Judges by name: `rules`, a model folder, or an OpenAI-compatible address with a model."""

from __future__ import annotations

from pathlib import Path

from strop.errors import ConfigurationError
from strop.generate.advisers.local import Local
from strop.generate.advisers.procedural import Procedural
from strop.recipes.advisers import parse_adviser
from strop.roles import Adviser


def parse_judge(text: str, rule: str) -> Adviser:
    """Who a text names; `rule` is the function that answers in place of a model, as module:function."""
    if text == "rules":
        return Procedural(rule)
    if Path(text).is_dir():
        return Local(text)
    if not text.startswith(("http://", "https://")):
        raise ConfigurationError(f"a judge is rules, a model folder or http://HOST:PORT/v1#MODEL, got {text!r}")
    found = parse_adviser(text)
    assert found is not None
    return found
