"""HTML templates of reports: Jinja with escaping, and visible control characters."""

from __future__ import annotations

import re
from functools import cache

import jinja2

# Text of a model as a page or a terminal may have it: what they would obey is shown instead.

# codes move a terminal's cursor or rename its window; half a character (a lone surrogate) cannot be written at all
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def visible(text: str) -> str:
    """A picture of each control character."""
    return _OBEYED.sub(_picture, text)


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    return chr(0x2400 + code) if code < ord(" ") else "\N{REPLACEMENT CHARACTER}"


# Templates of pages: whatever is put into them is escaped, and each is compiled once.


@cache
def compiled(text: str) -> jinja2.Template:
    """The template that a text describes; a name that is not given is an error."""
    return jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(text)
