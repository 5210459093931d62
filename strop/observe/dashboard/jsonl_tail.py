"""Incremental reader of a growing JSON-lines file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

_AT_ONCE = 4 << 20  # bytes of one look: a long history is caught up with in several


class News(NamedTuple):
    """Rows since the last read; `is_anew`: the file was rewritten, so that earlier rows are void."""

    rows: list[dict[str, Any]]
    is_anew: bool


@dataclass
class Tail:
    """Complete lines behind `offset`; a last one that is still being written is left for the next read."""

    path: Path
    offset: int = 0
    _last: bytes = field(default=b"", repr=False)  # the line that ends at `offset`

    def news(self) -> News:
        try:
            with self.path.open("rb") as file:
                is_anew = not self._is_same(file)
                if is_anew:
                    self.offset, self._last = 0, b""
                file.seek(self.offset)
                return News(self._rows(_whole(file)), is_anew)
        except FileNotFoundError:
            is_anew, self.offset, self._last = self.offset > 0, 0, b""
            return News([], is_anew)

    def _is_same(self, file: IO[bytes]) -> bool:
        """A run that goes on from a checkpoint writes its lines again: then the last one read stands elsewhere."""
        file.seek(self.offset - len(self._last))
        return file.read(len(self._last)) == self._last

    def _rows(self, text: bytes) -> list[dict[str, Any]]:
        lines = text.splitlines(keepends=True)
        self.offset += len(text)
        self._last = lines[-1] if lines else self._last
        return [row for line in lines if (row := _parsed(line)) is not None]


def _whole(file: IO[bytes]) -> bytes:
    """Up to the last end of a line."""
    found = file.read(_AT_ONCE)
    if b"\n" not in found:
        found += file.readline()
    return found[: found.rfind(b"\n") + 1]


def _parsed(line: bytes) -> dict[str, Any] | None:
    """A line that a crash cut short, with another behind it, says nothing."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) and isinstance(row.get("step"), int) else None
