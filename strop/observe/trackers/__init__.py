"""Where else metrics may go; each tracker is an extra, imported when it opens."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from strop.types import Metrics


class Tracker(Protocol):
    """Takes the metrics of each step."""

    def open(self, folder: Path, settings: dict[str, Any]) -> None: ...
    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None: ...
    def end(self) -> None: ...
