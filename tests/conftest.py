"""What all tests stand on."""

from __future__ import annotations

import gc
import os
import shutil
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")
ROOM = 1 << 32  # bytes: the folders of a test go when it passes, so that all together never need as much


def pytest_configure() -> None:
    """Folders of tests lie in memory where there is room: each checkpoint waits for the disk ten times."""
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long comes first: begun at the end, one process would work on it while the others have nothing."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish() -> None:
    """Libraries and tests are half a million objects that stay: each run that is launched would look through them."""
    gc.collect()
    gc.freeze()
