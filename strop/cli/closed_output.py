"""Output that nobody reads any more ends no run: a closed pipe or terminal is forgotten, and training goes on."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Forgiving:
    """A stream that turns into nothing once it cannot be written."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def write(self, text: str) -> int:
        try:
            self._inner.write(text)
        except OSError:
            self._forget()
        return len(text)

    def flush(self) -> None:
        try:
            self._inner.flush()
        except OSError:
            self._forget()

    def _forget(self) -> None:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, self._inner.fileno())
        os.close(nothing)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@contextmanager
def forgiving_output() -> Iterator[None]:
    """Within it, neither stdout nor stderr can fail."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = Forgiving(sys.stdout), Forgiving(sys.stderr)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stdout, sys.stderr = before
