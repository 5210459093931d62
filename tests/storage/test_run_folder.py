"""A run's folder: one process at a time."""

from __future__ import annotations

import fcntl
import threading
from pathlib import Path

import pytest

from strop.errors import BusyError
from strop.storage.run_folder import RunFolder


def test_somebody_who_looks_whether_a_run_goes_on_is_waited_for(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.acquire()
    folder.release()
    looking = (tmp_path / "run" / "lock").open()
    fcntl.flock(looking, fcntl.LOCK_SH)
    threading.Timer(0.1, looking.close).start()
    folder.acquire()
    with pytest.raises(BusyError, match="in use by process"):
        RunFolder(tmp_path / "run").acquire()
    folder.release()
