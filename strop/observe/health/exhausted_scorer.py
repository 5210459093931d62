"""Completions that exhaust their scorer: each earned what a wrong answer does, by the finding of a clock."""

from __future__ import annotations

from strop.observe.health import HealthFinding, HealthRule
from strop.observe.run_files.run_history import History

_MANY = 0.02  # of all rollouts
_LEAST = 5
_LETTERS = 120  # of a reason


class ExhaustedScorer(HealthRule):
    """A fiftieth of all rollouts."""

    def judge(self, history: History) -> HealthFinding | None:
        count = sum(kind.overruns for kind in history.kinds)
        rollouts = sum(kind.rollouts for kind in history.kinds)
        if count < max(_LEAST, _MANY * rollouts):
            return None
        worst = max(history.kinds, key=lambda kind: kind.overruns)
        evidence = (
            f"{count:,} of {rollouts:,} completions ran their scorer out of time or memory and counted as wrong, most "
            f"of them at {worst.name} ({worst.overruns:,}): {worst.overrun[:_LETTERS]}"
        )
        remedy = (
            "read some of them (strop rollouts); raise reward_seconds if honest ones are among them, or bound what the "
            "scorer computes"
        )
        return HealthFinding("scorer exhausted", evidence, remedy)
