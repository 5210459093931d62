"""Journals of a run as JSON lines: metrics.jsonl, timing.jsonl, and the score of each held-out task at each
measurement (heldout.jsonl), for paired comparisons by task.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from strop.stats.intervals import Difference, over_tasks
from strop.storage.run_folder import RunFolder, read_rows, write_rows
from strop.types import Metrics


class Journal:
    """Appends one line per step, wall-clock metrics apart; on resume everything after the checkpoint is discarded."""

    def __init__(self, metrics: Path, timing: Path) -> None:
        self._metrics, self._timing = metrics, timing

    def forget_after(self, step: int) -> None:
        for path in (self._metrics, self._timing):
            write_rows(path, [row for row in read_rows(path) if row["step"] <= step])

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        for path, row in ((self._metrics, metrics), (self._timing, timing)):
            with path.open("a") as file:
                file.write(json.dumps({"step": step, **row}) + "\n")


class HeldOutJournal:
    """Watcher that records the scores of a measurement with their step."""

    def __init__(self, folder: RunFolder) -> None:
        self._path = path_of(folder)
        self._noted: list[dict[str, Any]] = []

    def note(self, scores: list[dict[str, Any]]) -> None:
        """What was just measured: environment, level, a name of its tasks, and of each task how many rollouts were
        right.
        """
        self._noted = scores

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        if self._noted:
            with self._path.open("a") as file:
                file.write(json.dumps({"step": step, "scores": self._noted}) + "\n")
        self._noted = []

    def forget_after(self, step: int) -> None:
        """Of a run that goes on from a checkpoint."""
        write_rows(self._path, [row for row in read_rows(self._path) if row["step"] <= step])


def path_of(folder: RunFolder) -> Path:
    """Where they are."""
    return folder.path / "heldout.jsonl"


def gain_of(folder: RunFolder) -> Difference | None:
    """From the first measurement of a run to its last, task by task; None where there are no two."""
    rows = read_rows(path_of(folder))
    return between(rows[-1:], rows[:1]) if len(rows) > 1 else None


def last_rows(folder: RunFolder) -> list[dict[str, Any]]:
    """The last measurement of a run, if there is one."""
    return read_rows(path_of(folder))[-1:]


def between(rows: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> Difference | None:
    """Of measurements in pairs: over all tasks that both tried; None unless all tasks are the same."""
    left, right = ([score for row in side for score in _scores(row)] for side in (rows, others))
    if not left or [score["tasks"] for score in left] != [score["tasks"] for score in right]:
        return None
    return over_tasks(_shares(left), _shares(right))


def _scores(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Those of the environments that are trained."""
    return [score for score in row["scores"] if not score["is_unseen"]]


def _shares(scores: Sequence[Mapping[str, Any]]) -> list[float]:
    pairs = [pair for score in scores for pair in zip(score["right"], score["counted"], strict=True)]
    return [right / max(counted, 1) for right, counted in pairs]
