"""Temporary folders of processes: those of a killed process are removed by the next one that needs such a folder."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

_PREFIX, _OWNER = "strop-passing-", "owner"


class PassingFolder:
    """New folder with a lock that its owner holds while it lives, so that others can tell."""

    def __init__(self) -> None:
        _sweep(Path(tempfile.gettempdir()))
        place = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = os.open(place / _OWNER, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        self.path = place / "in"
        self.path.mkdir()
        self.close = weakref.finalize(self, _remove, place, lock)


def _remove(path: Path, lock: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(lock)


def _sweep(place: Path) -> None:
    """Remove what processes of this user left that are no more."""
    for path in place.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if path.is_symlink() or path.stat().st_uid != os.geteuid():
                continue
            lock = os.open(path / _OWNER, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: its owner lives
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(lock)
