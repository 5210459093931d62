"""Health rules about what a run achieved: overfitting, regression, reward hacking."""

from __future__ import annotations

import math

from strop.observe.health import HealthFinding
from strop.observe.metrics.reward_divergence import parting_of
from strop.observe.run_files.best_checkpoint import expected_highest
from strop.observe.run_files.run_history import History
from strop.roles import HealthRule

# Tasks that came again and again are known by heart, and held-out ones are not solved.

_TIMES = 4  # that each task was tried
_GAP = 0.1  # between success in training and the upper end of the held-out interval


class Memorised(HealthRule):
    """Success on tasks that were trained four times or more is a tenth above the interval of held-out ones."""

    def judge(self, history: History) -> HealthFinding | None:
        (made, tasks), measured, groups = history.tries, history.measured, history.late_groups(1 / 4)
        if not tasks or made < _TIMES * tasks or len(measured) < 2 or "evaluation.envs.0" in history.settings:
            return None
        success = sum(group.right for group in groups) / max(sum(group.tried for group in groups), 1)
        begin, end = measured[0], measured[-1]
        if not groups or success < end["heldout_high"] + _GAP or success - end["heldout"] < _GAP + begin["heldout"]:
            return None
        evidence = (
            f"each of {tasks:,} tasks was tried {made / tasks:.0f} times; {success:.0%} of the last rollouts of them "
            f"were right, and {end['heldout']:.0%} of held-out ones (at most {end['heldout_high']:.0%} at 95%)"
        )
        return HealthFinding("tasks known by heart", evidence, "more different tasks, fewer steps, or a KL price")


# Held-out accuracy was higher on the way than at the end: the run went on for too long, or broke.

_SIGMAS = 1.959964  # of a 95% interval
_HALF = 0.5  # of the highest accuracy: a fall by so much is grave


class Fallen(HealthRule):
    """A fall beyond both intervals, and beyond the bias of the highest of several equal measurements."""

    def judge(self, history: History) -> HealthFinding | None:
        measured = history.measured
        if len(measured) < 2:
            return None
        best, end = max(measured, key=lambda row: float(row["heldout"])), measured[-1]
        down, up = best["heldout"] - best["heldout_low"], end["heldout_high"] - end["heldout"]
        bias = (best["heldout_high"] - best["heldout_low"]) / (2 * _SIGMAS) * expected_highest(len(measured))
        fall = best["heldout"] - end["heldout"]
        if fall <= math.hypot(down, up) + bias:
            return None
        evidence = (
            f"held-out accuracy was {best['heldout']:.0%} at step {best['step']} and is {end['heldout']:.0%} at step "
            f"{end['step']}, a fall beyond its intervals and beyond chance among {len(measured)} measurements"
        )
        remedy = "take checkpoints/best, and lower learning_rate or add a KL price before going on from there"
        return HealthFinding("accuracy fell", evidence, remedy, is_grave=fall >= _HALF * best["heldout"])


# The reward rises and held-out accuracy falls or stands still: what is paid is not what is meant.

_LEAST_RISE = 0.1  # of the reward
_STILL = 0.1  # of accuracy, whatever the scale of the reward
_LEAST = 8  # steps
_SOLVED = 0.95  # held-out accuracy that has no room to rise
_READ = "read the rollouts that earn most (`strop show`), and see what `strop attack` finds in the reward"


class Hacking(HealthRule):
    """Reward rises while held-out accuracy falls beyond its interval (grave), or a gain of 10 points, or of half the
    rise in reward, is ruled out.
    """

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
