"""Metrics files of a run: one line per step in metrics.jsonl, and wall-clock metrics apart from it in timing.jsonl."""

from __future__ import annotations

import json
from pathlib import Path

from strop.storage.run_folder import read_rows, write_rows
from strop.types import Metrics


class Journal:
    """Appends rows; on resume everything after the checkpoint is discarded."""

    def __init__(self, metrics: Path, timing: Path) -> None:
        self._metrics, self._timing = metrics, timing

    def forget_after(self, step: int) -> None:
        for path in (self._metrics, self._timing):
            write_rows(path, [row for row in read_rows(path) if row["step"] <= step])

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        for path, row in ((self._metrics, metrics), (self._timing, timing)):
            with path.open("a") as file:
                file.write(json.dumps({"step": step, **row}) + "\n")
