"""The environment fails for one kind of task: those rollouts are never trained on, and the others take their place."""

from __future__ import annotations

from strop.observe.health import HealthFinding, HealthRule
from strop.observe.run_files.run_history import History

_MANY = 0.1  # of the rollouts of a kind
_MOST = 0.5
_LEAST = 10  # failed rollouts
_LETTERS = 120  # of an error


class FailingKind(HealthRule):
    """A tenth of the rollouts of the kind that fails most."""

    def judge(self, history: History) -> HealthFinding | None:
        failing = [kind for kind in history.kinds if kind.failed >= max(_LEAST, _MANY * kind.rollouts)]
        if not failing:
            return None
        worst = max(failing, key=lambda kind: kind.failed / kind.rollouts)
        others = [kind for kind in history.kinds if kind is not worst]
        beside = sum(kind.failed for kind in others) / max(sum(kind.rollouts for kind in others), 1)
        share = worst.failed / worst.rollouts
        evidence = f"{worst.failed:,} of {worst.rollouts:,} rollouts of {worst.name} failed "
        evidence += f"by the environment's fault ({share:.0%}"
        evidence += f"; {beside:.1%} of all others)" if others else ")"
        evidence += f", most often: {worst.error[:_LETTERS]}" if worst.error else ""
        remedy = "mend the environment or its reward; more time (env_seconds, reward_seconds) if it is slow"
        return HealthFinding("environment failing for one kind", evidence, remedy, is_grave=share >= _MOST)
