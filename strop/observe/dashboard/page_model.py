"""Page with a cursor that tells whether rendering it again would show anything new."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from markupsafe import Markup


@dataclass(frozen=True)
class WatchPage:
    """Result of a page function."""

    title: str
    cursor: str
    body: Callable[[], Markup]
    run: str = ""  # that the links at the top stay with
    every: float = 0.0  # seconds between two looks of a browser; 0: it shows what was, and is not drawn again

    @property
    def tag(self) -> str:
        """Of its cursor, as HTTP has it."""
        return f'"{hashlib.sha256(self.cursor.encode()).hexdigest()}"'


def address(page: str, **given: object) -> str:
    """Of a page, with what it is asked; what is empty is left out."""
    asked = {name: value for name, value in given.items() if value not in ("", None)}
    return f"{page}?{urlencode(asked, doseq=True)}" if asked else page


class PageQuery(dict[str, list[str]]):
    """Parameters of a request, by name."""

    def one(self, name: str) -> str:
        return self.get(name, [""])[0]

    def number(self, name: str) -> float | None:
        """None where it is no number."""
        try:
            found = float(self.one(name))
        except ValueError:
            return None
        return found if found == found else None  # a NaN is none


Pages = Mapping[str, Callable[..., WatchPage]]
