"""Rows of a JSON file: one object per line, or one array of objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from strop.errors import DataError


def json_rows(path: Path) -> Iterator[tuple[str, Any]]:
    """Every row with its place for errors; the first line that is no JSON is named."""
    content = path.read_bytes().removeprefix(b"\xef\xbb\xbf")  # the mark that some editors put before UTF-8
    if content.lstrip().startswith(b"[") and path.suffix == ".json":
        yield from _array(path, content)
        return
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            if line.strip():
                yield f"{path}:{number}", json.loads(line.decode("utf-8"))
        except ValueError as error:
            raise DataError(f"{path}:{number}: {error}") from None


def _array(path: Path, content: bytes) -> Iterator[tuple[str, Any]]:
    try:
        rows = json.loads(content.decode("utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: {error}") from None
    for number, row in enumerate(rows):
        yield f"{path}, row {number}", row
