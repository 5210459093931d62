"""The reward rises and held-out accuracy falls or stands still: what is paid is not what is meant."""

from __future__ import annotations

import math

from strop.observe.health import HealthFinding, HealthRule
from strop.observe.metrics.reward_divergence import parting_of
from strop.observe.run_files.run_history import History

_LEAST_RISE = 0.1  # of the reward
_STILL = 0.1  # of accuracy, whatever the scale of the reward
_LEAST = 8  # steps
_SOLVED = 0.95  # held-out accuracy that has no room to rise
_READ = "read the rollouts that earn most (`strop show`), and see what `strop attack` finds in the reward"


class Hacking(HealthRule):
    """A fall beyond its interval is grave; standing still: a gain of 10 points, or of half the rise, is ruled out."""

    def judge(self, history: History) -> HealthFinding | None:
        if (found := parting_of([dict(row) for row in history.rows])) is not None:
            return HealthFinding("reward without accuracy", str(found), _READ, is_grave=True)
        rise, measured = history.rise("reward"), history.measured
        if rise < _LEAST_RISE or len(measured) < 2 or "evaluation.envs.0" in history.settings:
            return None  # environments that nobody trains on may stand still
        begin, end = measured[0], measured[-1]
        gain = end["heldout"] - begin["heldout"]
        most = gain + math.hypot(end["heldout_high"] - end["heldout"], begin["heldout"] - begin["heldout_low"])
        most = most if history.gain is None else history.gain.high  # task by task, which is surer
        if end["heldout"] >= _SOLVED or most >= min(rise / 2, _STILL) or len(history.steps) < _LEAST:
            return None
        evidence = (
            f"the reward rose by {rise:.3g} over {len(history.steps)} steps while held-out accuracy went from "
            f"{begin['heldout']:.0%} to {end['heldout']:.0%} (at most {100 * most:+.0f} points at 95%)"
        )
        return HealthFinding("reward without accuracy", evidence, f"{_READ}; more different tasks if they repeat")
