"""The world fails for one kind of task: those attempts are never trained on, and the others take their place."""

from __future__ import annotations

from strop.observe.health import HealthRule, RunVerdict
from strop.observe.run_files.run_history import History

_MANY = 0.1  # of the attempts at a kind
_MOST = 0.5
_LEAST = 10  # failed attempts
_LETTERS = 120  # of an error


class FailingKind(HealthRule):
    """A tenth of the attempts at the kind that fails most."""

    def judge(self, history: History) -> RunVerdict | None:
        failing = [kind for kind in history.kinds if kind.failed >= max(_LEAST, _MANY * kind.attempts)]
        if not failing:
            return None
        worst = max(failing, key=lambda kind: kind.failed / kind.attempts)
        others = [kind for kind in history.kinds if kind is not worst]
        beside = sum(kind.failed for kind in others) / max(sum(kind.attempts for kind in others), 1)
        share = worst.failed / worst.attempts
        evidence = (
            f"{worst.failed:,} of {worst.attempts:,} attempts at {worst.name} failed by the world's fault ({share:.0%}"
        )
        evidence += f"; {beside:.1%} of all others)" if others else ")"
        evidence += f", most often: {worst.error[:_LETTERS]}" if worst.error else ""
        remedy = "mend the world or its reward; more time (world_seconds, reward_seconds) if it is slow"
        return RunVerdict("world failing for one kind", evidence, remedy, is_grave=share >= _MOST)
