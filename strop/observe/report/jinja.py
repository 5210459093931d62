"""Templates of pages: whatever is put into them is escaped, and each is compiled once."""

from __future__ import annotations

from functools import cache

import jinja2


@cache
def compiled(text: str) -> jinja2.Template:
    """The template that a text describes; a name that is not given is an error."""
    return jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(text)
