"""Private-use twins of the first and last characters of control tokens: content that uses them spells no control
token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from strop.errors import ModelError

LAST_ALIAS = 0x10FEFF  # aliases of control tokens stand below the twins, at the very end of Unicode
MOST_ALIASES = 0xFE00
_FIRST = LAST_ALIAS + 1  # an ASCII character's twin is this and its code
_OTHERS = range(_FIRST + 0x80, _FIRST + 0xFE)
_PRINTED = range(0x21, 0x7F)
_COMMON = " _-/.:,;'\"\\"  # too usual in content, and never all that a template leaves open between its own characters
_LOST = "\ufffd"
_IS_TWIN = re.compile(f"[{chr(_FIRST)}-{chr(_FIRST + 0xFD)}]")


@dataclass(frozen=True)
class Twins:
    """Translation of content for a template, and back.

    Content cannot contain twins or aliases of its own: they become U+FFFD.
    """

    risky: re.Pattern[str]
    covers: Mapping[int, str]
    covers_all: Mapping[int, str]
    uncovers: Mapping[int, str]
    harmless: Mapping[int, str]

    @classmethod
    def of(cls, tokens: Iterable[str], num_aliases: int) -> Twins:
        """Those that these control tokens need."""
        edges = {letter for text in tokens for letter in _telling(text.strip())}
        others = sorted(each for each in edges if ord(each) not in _PRINTED)
        if len(others) > len(_OTHERS):
            raise ModelError(f"control tokens begin and end with {len(others)} characters beyond ASCII: too many")
        twins = {code: chr(_FIRST + code) for code in _PRINTED}
        twins |= {ord(each): chr(code) for each, code in zip(others, _OTHERS, strict=False)}
        aliases = dict.fromkeys(range(LAST_ALIAS - num_aliases + 1, LAST_ALIAS + 1), _LOST)
        own = aliases | dict.fromkeys(map(ord, twins.values()), _LOST)
        found = f"{re.escape(''.join(sorted(edges)))}{chr(LAST_ALIAS - num_aliases + 1)}-{chr(_FIRST + 0xFD)}"
        covers = own | {code: twin for code, twin in twins.items() if chr(code) in edges}
        back = {ord(twin): chr(code) for code, twin in twins.items()}
        return cls(re.compile(f"[{found}]"), covers, own | twins, back, aliases)

    def is_risky(self, text: str) -> bool:
        """Whether it holds anything that could belong to a control token."""
        return self.risky.search(text) is not None

    def cover(self, text: str) -> str:
        """Content as a template may see it: nothing that is done with it there makes a control token."""
        return text.translate(self.covers) if self.is_risky(text) else text

    def cover_name(self, text: str) -> str:
        """A name as a template may see it, which may put brackets of its own around it."""
        return text.translate(self.covers_all)

    def cover_json(self, text: str, has_names: bool = False) -> str:
        """JSON whose texts are covered, and whose keys are as names are; text that is no JSON is content."""
        if not has_names and not self.is_risky(text):
            return text
        try:
            return json.dumps(self._cover_within(json.loads(text), self.cover_name if has_names else self.cover))
        except (ValueError, RecursionError):
            return self.cover(text)

    def has_any(self, text: str) -> bool:
        """Whether some of a text is covered."""
        return not text.isascii() and _IS_TWIN.search(text) is not None

    def uncover(self, text: str) -> str:
        """The text that was covered."""
        return text.translate(self.uncovers) if self.has_any(text) else text

    def without_aliases(self, text: str) -> str:
        """Text that passes no template: only aliases could harm there."""
        return text.translate(self.harmless) if not text.isascii() and self.is_risky(text) else text

    def _cover_within(self, value: Any, cover_key: Callable[[str], str]) -> Any:
        if isinstance(value, str):
            return self.cover(value)
        if isinstance(value, list):
            return [self._cover_within(each, cover_key) for each in value]
        if isinstance(value, dict):
            return {cover_key(key): self._cover_within(each, cover_key) for key, each in value.items()}
        return value


def _telling(token: str) -> set[str]:
    """Characters without which content can have no part in a token: its first, its last and its signs."""
    return {token[0], token[-1], *(letter for letter in token if not letter.isalnum() and letter not in _COMMON)}
