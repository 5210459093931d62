"""Held-out accuracy was higher on the way than at the end: the run went on for too long, or broke."""

from __future__ import annotations

import math

from strop.observe.health import HealthFinding, HealthRule
from strop.observe.run_files.best_checkpoint import expected_highest
from strop.observe.run_files.run_history import History

_SIGMAS = 1.959964  # of a 95% interval
_HALF = 0.5  # of the highest accuracy: a fall by so much is grave


class Fallen(HealthRule):
    """Beyond both intervals, and beyond what the highest of several equal measurements stands out by chance."""

    def judge(self, history: History) -> HealthFinding | None:
        measured = history.measured
        if len(measured) < 2:
            return None
        best, end = max(measured, key=lambda row: float(row["heldout"])), measured[-1]
        down, up = best["heldout"] - best["heldout_low"], end["heldout_high"] - end["heldout"]
        probability = (best["heldout_high"] - best["heldout_low"]) / (2 * _SIGMAS) * expected_highest(len(measured))
        fall = best["heldout"] - end["heldout"]
        if fall <= math.hypot(down, up) + probability:
            return None
        evidence = (
            f"held-out accuracy was {best['heldout']:.0%} at step {best['step']} and is {end['heldout']:.0%} at step "
            f"{end['step']}, a fall beyond its intervals and beyond chance among {len(measured)} measurements"
        )
        remedy = "take checkpoints/best, and lower learning_rate or add a KL price before going on from there"
        return HealthFinding("accuracy fell", evidence, remedy, is_grave=fall >= _HALF * best["heldout"])
