"""Folder of a run: its files, and a lock for its only writing process."""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from strop.errors import BusyError, ConfigurationError, DataError

WARMUP = "warmup"  # the folder of a warm-up within that of its run
FORMAT = 6  # of run folders; one of another format is refused
_LONGEST_NAME = 100
_PATIENCE = 0.3  # seconds
_ORIGIN = {"machine": dict, "files": dict, "rules": dict, "recipe.py": str}
_SCORES = {"env": str, "level": int, "tasks": str, "is_unseen": bool, "right": list, "counted": list}


class RunFolder:
    """`runs/<name>/`: recipe.py, origin.json, metrics.jsonl, timing.jsonl, ledger.db, checkpoints/, summary.json."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: TextIO | None = None

    @property
    def recipe(self) -> Path:
        return self.path / "recipe.py"

    @property
    def origin(self) -> Path:
        return self.path / "origin.json"

    def read_origin(self) -> dict[str, Any]:
        """What the run was made from; a folder of another version of strop is refused."""
        try:
            origin: dict[str, Any] = json.loads(self.origin.read_text())
        except FileNotFoundError:
            origin = {}
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(f"{self.origin} is no JSON: {error}") from None
        if not isinstance(origin, dict):
            raise ConfigurationError(f"{self.origin} is no JSON object")
        if (found := origin.get("format")) != FORMAT:
            raise ConfigurationError(
                f"{self.path} was made by another version of strop (format {found or 'before 2'}, this one reads "
                f"{FORMAT}): go on with that version, or train anew; its checkpoints can be loaded as models"
            )
        if wrong := [name for name, kind in _ORIGIN.items() if not isinstance(origin.get(name), kind)]:
            raise ConfigurationError(f"{self.origin} is not what strop writes: {', '.join(wrong)}")
        return origin

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def timing(self) -> Path:
        return self.path / "timing.jsonl"

    @property
    def ledger(self) -> Path:
        return self.path / "ledger.db"

    def require_ledger(self) -> None:
        """Refuse a folder in which nothing can be read."""
        if not self.ledger.is_file():
            raise ConfigurationError(
                f"{self.path} has no ledger.db: it is not a run folder, or no rollout was recorded yet"
            )

    def require_recipe(self, hint: str = "") -> None:
        """Refuse a folder that is no run's; the hint stands behind it."""
        if not self.recipe.is_file():
            raise ConfigurationError(f"{self.path} is not a run folder: it has no recipe.py{hint}")

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
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / "lock").open("a+")
        except OSError as error:
            raise ConfigurationError(f"no run can be written to {self.path}: {error.strerror}; see --runs") from error
        if not _taken(lock):
            lock.seek(0)
            owner = lock.read().strip() or "unknown"
            lock.close()
            raise BusyError(f"{self.path} is in use by process {owner}: wait for it, or choose another name")
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
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise ConfigurationError(
            f"a run's name is made of letters, digits, '.', '-' and '_' and begins with a letter or digit, got {name!r}"
        )
    if len(name) > _LONGEST_NAME:
        raise ConfigurationError(f"a run's name has at most {_LONGEST_NAME} letters, got {len(name)}")
    path, number = root / name, 1
    while path.exists():
        number += 1
        path = root / f"{name}-{number}"
    return RunFolder(path)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of a JSON-lines file, one per step; a last line cut short by a crash is left out."""
    lines = path.read_text(errors="replace").split("\n") if path.is_file() else []
    while lines and not lines[-1].strip():
        lines.pop()
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(_row(line))
        except (ValueError, RecursionError) as error:
            if number < len(lines):
                raise DataError(f"{path}, line {number}: {error}") from None
    return rows


def _row(line: str) -> dict[str, Any]:
    row = json.loads(line)
    if not isinstance(row, dict) or type(row.get("step")) is not int or row["step"] < 0:
        raise ValueError("a row is an object with the number of its step")
    for name, value in row.items():
        if not (value is None or isinstance(value, list if name == "scores" else int | float)):
            raise ValueError(f"{name} is no number")
    for score in row.get("scores", ()):
        if not isinstance(score, dict) or not all(isinstance(score.get(key), kind) for key, kind in _SCORES.items()):
            raise ValueError("scores are not what strop writes")
    return row


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """The file anew, whole or not at all: a run that is killed meanwhile has the old one."""
    building = path.with_name(f".{path.name}.building")
    building.write_text("".join(json.dumps(row) + "\n" for row in rows))
    building.replace(path)


def _taken(lock: TextIO) -> bool:
    """Whether the lock could be had; whoever only asks if a run goes on holds it for a moment."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
