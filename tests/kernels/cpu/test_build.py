"""What was compiled is kept for the next process, but not for ever."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from strop.kernels.cpu import build

pytestmark = pytest.mark.skipif(build.compiler_here() is None, reason="there is no C compiler")
DAY = 86400


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "strop").mkdir()
    build.library.cache_clear()
    yield tmp_path / "strop"
    build.library.cache_clear()


def left(folder: Path, name: str, days: float) -> Path:
    path = folder / name
    path.write_bytes(b"")
    os.utime(path, (time.time() - days * DAY,) * 2)
    return path


def test_what_nobody_loaded_for_a_month_goes_when_something_is_added(folder: Path) -> None:
    old, recent, other = left(folder, "train-0.so", 31), left(folder, "step-1.so", 29), left(folder, "notes", 99)
    assert build.library("checksum") is not None
    assert not old.exists() and recent.exists() and other.exists()
    assert len(list(folder.glob("checksum-*.so"))) == 1


def test_what_is_loaded_again_is_neither_compiled_again_nor_old(folder: Path) -> None:
    build.library("checksum")
    (made,) = folder.glob("checksum-*.so")
    inode, long_ago = made.stat().st_ino, time.time() - 99 * DAY
    os.utime(made, (long_ago, long_ago))
    old = left(folder, "train-0.so", 31)
    build.library.cache_clear()
    assert build.library("checksum") is not None
    assert made.stat().st_ino == inode and time.time() - made.stat().st_mtime < DAY
    assert old.exists()  # nothing was added
