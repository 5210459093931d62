"""Output streams that survive a closed pipe or terminal: further output is discarded and training continues."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class ClosableStream:
    """Stream that discards its output once it cannot be written."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def write(self, text: str) -> int:
        try:
            self._inner.write(text)
        except OSError:
            self._discard()
        return len(text)

    def flush(self) -> None:
        try:
            self._inner.flush()
        except OSError:
            self._discard()

    def _discard(self) -> None:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, self._inner.fileno())
        os.close(nothing)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@contextmanager
def closable_output() -> Iterator[None]:
    """Context in which neither stdout nor stderr can fail."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = ClosableStream(sys.stdout), ClosableStream(sys.stderr)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stdout, sys.stderr = before
