"""Says at the end of a distillation whether the student hacked its teacher (2502.02671), in hacking.json.

Hacked is a student that still comes nearer to its teacher while it goes away from the oracle that the teacher stands
for. Reading: distances are those of each draw before it is trained on, averaged over `window` steps.
Papers: teacher-hacking
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from strop.errors import ConfigurationError
from strop.observe.power_law import departs, turned
from strop.storage.run_folder import RunFolder, read_rows
from strop.types import Metrics

_BEHIND = 3  # points: with 10, no run of 100 steps could ever be found hacked


@dataclass
class HackingReport:
    """Reads the run's own figures, so that a resumed run is judged as a whole."""

    proxy: str  # figure of the distance to the teacher
    golden: str  # figure of the distance to the oracle
    window: int = 10  # steps of one point; the golden minimum must lie 3 points behind the last
    _folder: Path | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.window < 1:
            raise ConfigurationError(f"HackingReport needs window >= 1, got {self.window}")

    def open(self, folder: Path, settings: dict[str, Any]) -> None:
        self._folder = folder

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        pass  # all steps are read in the end

    def end(self) -> None:
        assert self._folder is not None
        rows = [row for row in read_rows(RunFolder(self._folder).metrics) if self.proxy in row and self.golden in row]
        if rows:
            (self._folder / "hacking.json").write_text(json.dumps(self.judged(rows), indent=1) + "\n")

    def judged(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Where the golden distance was least, and what followed."""
        points = [rows[first : first + self.window] for first in range(0, len(rows), self.window)]
        steps = [float(point[-1]["step"]) for point in points]
        proxy, golden = ([float(np.mean([row[n] for row in p])) for p in points] for n in (self.proxy, self.golden))
        lowest = turned(proxy, golden, _BEHIND)
        is_lawful = min(proxy) > 0 and not departs(steps, proxy)
        return {
            "is_hacked": lowest is not None,
            "golden_minimum_at": None if lowest is None else int(steps[lowest]),
            "proxy_follows_a_power_law": is_lawful,
            "proxy": proxy[-1],
            "golden": golden[-1],
        }
