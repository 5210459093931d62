"""Terminal: output that survives its closing, and the question before a recipe.py of somebody else is executed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from strop.storage.run_folder import RunFolder
from strop.storage.trust import is_own, refusal


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


def is_trusted(folder: RunFolder, trust: bool) -> bool:
    """Whether the recipe of a run may be executed although this user did not write it; without an answer: no."""
    if trust or not folder.recipe.is_file() or is_own(folder.recipe):
        return trust
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(refusal(folder.recipe), file=sys.stderr)
    return typer.confirm("Execute it?", default=False, err=True)
