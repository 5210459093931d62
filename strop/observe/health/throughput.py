"""Health rules about throughput: a side that waits, a scorer that runs into its deadline."""

from __future__ import annotations

from strop.observe.health import HealthFinding
from strop.observe.run_files.run_history import History
from strop.roles import HealthRule

# Completions that exhaust their scorer: each earned what a wrong answer does, by the finding of a clock.

_MANY = 0.02  # of all rollouts
_LEAST = 5
_LETTERS = 120  # of a reason


class ExhaustedScorer(HealthRule):
    """The scorer ran out of time for a fiftieth of all rollouts."""

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


# An asynchronous run in which one side waits for the other nearly all the time.

_STARVED = 0.6  # of a step: the trainer waits for groups
_IDLE = 0.02  # of a step: groups always lie ready, so generation is held back
_LEAST_SECONDS = 60.0  # of a run, below which its opening counts too much
_IDLE_SIDE_LEAST = 8  # steps


class Waiting(HealthRule):
    """One side waits for the other; only where generation may run ahead, because without lag one always waits."""

    def judge(self, history: History) -> HealthFinding | None:
        waited = [value for _, value in history.points("generate_seconds")]
        total = sum(value for _, value in history.points("seconds"))
        if history.number("admission.lag", 0) < 1 or len(waited) < _IDLE_SIDE_LEAST or total < _LEAST_SECONDS:
            return None
        share, trained = sum(waited) / total, sum(value for _, value in history.points("train_seconds")) / total
        told = f"of {total:.0f} s the trainer waited {share:.0%} for groups and trained {trained:.0%}"
        if share > _STARVED:
            remedy = (
                "more engines (--engines), shorter completions or fewer rollouts per step; `strop why` says who is slow"
            )
            return HealthFinding("starved trainer", told, remedy)
        if share < _IDLE and trained > 0.5:
            remedy = "engines stand still most of the time: fewer of them, or more rollouts for each step"
            return HealthFinding("idle engine", told, remedy)
        return None
