"""What came of a run lies within its noise: more seeds or more held-out tasks would tell."""

from __future__ import annotations

import math

from strop.observe.health import HealthFinding, HealthRule
from strop.observe.run_files.run_history import History
from strop.stats.intervals import over_seeds

_NONE = 0.005  # of accuracy: one run that stayed where it was claims nothing
_LEAST = 20  # steps, before a gain is expected at all
_SMALL = 0.03  # of accuracy: an interval around 0 that is no wider tells that nothing changed


class FewSeeds(HealthRule):
    """The interval of the change holds 0: over the seeds beside it where there are two or more, else over its tasks."""

    def judge(self, history: History) -> HealthFinding | None:
        measured = history.measured
        if len(history.steps) < _LEAST or len(measured) < 2:
            return None
        if len(history.siblings) > 1:
            return self._of_seeds([after - before for before, after in history.siblings])
        begin, end = measured[0], measured[-1]
        change = end["heldout"] - begin["heldout"]
        downwards = math.hypot(end["heldout"] - end["heldout_low"], begin["heldout_high"] - begin["heldout"])
        upwards = math.hypot(end["heldout_high"] - end["heldout"], begin["heldout"] - begin["heldout_low"])
        if history.gain is not None:  # on the same tasks, which is surer
            upwards, downwards = history.gain.high - change, change - history.gain.low
        if abs(change) < _NONE or not _is_open(change - downwards, change + upwards):
            return None
        evidence = (
            f"held-out accuracy changed by {100 * change:+.1f} points in one run, and its 95% interval goes from "
            f"{100 * (change - downwards):+.0f} to {100 * (change + upwards):+.0f}"
        )
        remedy = (
            "more held-out tasks (`strop eval RUN --plan 3` says how many), or more seeds (`strop compare --seeds`)"
        )
        return HealthFinding("too few to tell", evidence, remedy)

    def _of_seeds(self, changes: list[float]) -> HealthFinding | None:
        mean, low, high = over_seeds(changes)
        if low is None or high is None or not _is_open(low, high):
            return None
        evidence = (
            f"held-out accuracy changed by {100 * mean:+.1f} points on average over {len(changes)} seeds, and its 95% "
            f"interval goes from {100 * low:+.0f} to {100 * high:+.0f}"
        )
        return HealthFinding(
            "too few to tell", evidence, "more seeds, or a setting whose effect is larger than their spread"
        )


def _is_open(low: float, high: float) -> bool:
    """Whether it may have become better, worse or stayed as it was."""
    return low <= 0 <= high and max(-low, high) > _SMALL
