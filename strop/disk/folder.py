"""A run on disk: where its files are, and that only one process writes them."""

from __future__ import annotations

import fcntl
import json
import os
import re
from pathlib import Path
from typing import Any, TextIO

from strop.errors import BusyError, ConfigurationError


class RunFolder:
    """`runs/<name>/`: recipe.py, metrics.jsonl, timing.jsonl, ledger.db, checkpoints/, summary.json, report.html."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: TextIO | None = None

    @property
    def recipe(self) -> Path:
        return self.path / "recipe.py"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def timing(self) -> Path:
        return self.path / "timing.jsonl"

    @property
    def ledger(self) -> Path:
        return self.path / "ledger.db"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def summary(self) -> Path:
        return self.path / "summary.json"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    @property
    def status(self) -> Path:
        return self.path / "status.json"

    @property
    def stacks(self) -> Path:
        return self.path / "stacks.txt"

    @property
    def request(self) -> Path:
        """While it exists, somebody waits for stacks."""
        return self.path / "why.request"

    def acquire(self) -> None:
        """Take the folder for this process; it is given back when the process ends, however it ends."""
        self.path.mkdir(parents=True, exist_ok=True)
        lock = (self.path / "lock").open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.seek(0)
            owner = lock.read().strip() or "unknown"
            lock.close()
            raise BusyError(f"{self.path} is in use by process {owner}: wait for it, or choose another name") from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock

    def release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def fresh_folder(root: Path, name: str) -> RunFolder:
    """`root/name`, or with a number behind it where that exists."""
    if not re.fullmatch(r"[\w.-]+", name):
        raise ConfigurationError(f"a run's name is made of letters, digits, '.', '-' and '_', got {name!r}")
    path, number = root / name, 1
    while path.exists():
        number += 1
        path = root / f"{name}-{number}"
    return RunFolder(path)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of a JSON-lines file; a last line cut short by a crash is left out."""
    rows = []
    for line in path.read_text().splitlines() if path.is_file() else []:
        try:
            rows.append(json.loads(line))
        except ValueError:
            break
    return rows
