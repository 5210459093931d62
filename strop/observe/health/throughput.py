"""Health rules about throughput: a side that waits, a scorer that runs into its deadline, a judge without answers."""

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


# Questions to a judge, teacher or generator without a readable answer: their rollouts, hints or tasks are lost.

_LOST = 0.05  # of the questions to a part
_LEAST_ASKED = 20


class UnansweredPart(HealthRule):
    """A twentieth of the questions to a named part failed, or their answers could not be read."""

    def judge(self, history: History) -> HealthFinding | None:
        names = {name for row in history.steps for name in row}
        found = []
        for role in sorted(name.removesuffix("/asked") for name in names if name.endswith("/asked")):
            asked, failed, unread = (
                sum(value for _, value in history.points(f"{role}/{each}")) for each in ("asked", "failed", "unread")
            )
            if asked >= _LEAST_ASKED and failed + unread >= _LOST * asked:
                found.append(((failed + unread) / asked, role, asked, failed, unread))
        if not found:
            return None
        share, role, asked, failed, unread = max(found)
        evidence = (
            f"{failed + unread:,.0f} of {asked:,.0f} questions to {role} had no readable answer ({share:.0%}): "
            f"{failed:,.0f} failed and {unread:,.0f} could not be read"
        )
        remedy = (
            "what hung on them was left out of training: read answers in llm_answers.db; for unread ones another model "
            "or prompt, for failed ones fewer questions at once (at_once) or a longer deadline (seconds)"
        )
        return HealthFinding("unanswered part", evidence, remedy, is_grave=share > _MOST_LOST)


_MOST_LOST = 0.25  # of the questions to a part, above which what was trained is not what was meant

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
