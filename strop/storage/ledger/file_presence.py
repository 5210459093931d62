"""Check that the ledger's file still exists while a run writes to it: rows written to a deleted file are lost."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from strop.errors import CheckpointError
from strop.storage.ledger.ledger import Ledger
from strop.types import Metrics


class Presence:
    """Watcher that checks at each step that the ledger's file is still the one that was opened."""

    def __init__(self, path: Path, ledger: Ledger) -> None:
        self._path, self._ledger = path, ledger
        self._file = _file(path)

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        if _file(self._path) == self._file:
            return
        kept = self._path.with_name("ledger.kept.db")
        how = f"put it back: mv {kept} {self._path}, and go on with strop train --resume {self._path.parent}"
        try:
            kept.unlink(missing_ok=True)
            self._ledger.rescue(kept)
        except (OSError, sqlite3.Error) as error:
            how = f"what it knew could not be saved: {error}"
        raise CheckpointError(f"{self._path} was deleted or replaced while the run wrote to it (step {step}). {how}")


def _file(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
