"""A folder of passing things goes with its owner, or, where that was killed, when the next one is made."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from strop.workers.passing_folder import PassingFolder

_OWNER = (
    "import os; from strop.workers.passing_folder import PassingFolder; "
    "kept = PassingFolder(); print(kept.path, flush=True); "
)


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_has_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    words = [sys.executable, "-c"]
    killed = subprocess.run([*words, _OWNER + "os.kill(os.getpid(), 9)"], capture_output=True, text=True)
    living = subprocess.Popen([*words, _OWNER + "input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert living.stdout is not None
    others, left = Path(living.stdout.readline().strip()), Path(killed.stdout.strip())
    assert others.is_dir()
    mine = PassingFolder()
    assert not left.parent.exists() and others.is_dir() and mine.path.is_dir()
    mine.close()
    living.communicate("\n")
    assert list(tmp_path.iterdir()) == []
