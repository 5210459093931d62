"""Best checkpoint by held-out accuracy, kept as `checkpoints/best`.

It is selected for being high, so its accuracy is biased upwards: where all m measurements are equally good, the highest
exceeds the truth on average by the expected maximum of m normal numbers. This bias is reported with it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from strop.storage.run_folder import RunFolder
from strop.types import Metrics

_SIGMAS = 1.959964  # of a 95% interval
_CELLS = 200  # twelve digits, as the integrand is smooth but for one jump, which lies between two of them


@dataclass(frozen=True)
class BestMeasurement:
    """Best of `measured` measurements."""

    step: int
    heldout: float
    low: float
    high: float
    measured: int = 1

    @property
    def bias(self) -> float:
        """By how much it is too high at most, on average: if all were equally good, on tasks of their own."""
        return (self.high - self.low) / (2 * _SIGMAS) * expected_highest(self.measured)


@dataclass
class BestCheckpoint:
    """Watcher that saves whenever held-out accuracy is higher than ever before."""

    folder: RunFolder
    save: Callable[[int], None]
    standing: BestMeasurement | None = field(default=None, init=False)

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        accuracy = metrics.get("heldout", math.nan)
        if math.isnan(accuracy):
            return
        before = self.standing
        if before is None or accuracy > before.heldout:
            measured = before.measured + 1 if before else 1
            self.save(step)  # while the one before is still spared: at any moment there is one
            self.standing = BestMeasurement(step, accuracy, metrics["heldout_low"], metrics["heldout_high"], measured)
            self._name(step)
        else:
            self.standing = replace(before, measured=before.measured + 1)
        path_of(self.folder).write_text(json.dumps(asdict(self.standing)) + "\n")

    def _name(self, step: int) -> None:
        name = self.folder.checkpoints / "best"
        name.unlink(missing_ok=True)
        name.symlink_to(f"step-{step}")

    @property
    def kept(self) -> Path | None:
        """Which checkpoint must stay."""
        return self.folder.checkpoints / f"step-{self.standing.step}" if self.standing else None

    def restore(self) -> None:
        """Of a run that goes on, unless what was kept is gone."""
        found = read_best(self.folder)
        if found is not None and (self.folder.checkpoints / f"step-{found.step}").is_dir():
            self.standing = found


def path_of(folder: RunFolder) -> Path:
    """Where it is written down."""
    return folder.checkpoints / "best.json"


def read_best(folder: RunFolder) -> BestMeasurement | None:
    """The best measurement of a run, if there was one."""
    try:
        return BestMeasurement(**json.loads(path_of(folder).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def expected_highest(count: int) -> float:
    """The mean of the highest of so many standard normal numbers: the integral of [x > 0] - F(x)^count."""
    width = 16 / _CELLS
    places = (-8 + (cell + 0.5) * width for cell in range(_CELLS))
    return sum((x > 0) - (0.5 * (1 + math.erf(x / math.sqrt(2)))) ** count for x in places) * width
