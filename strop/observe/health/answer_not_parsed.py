"""Nothing is ever right, and the right answer stands in the completions: the rule that reads answers does not find
it.
"""

from __future__ import annotations

import re

from strop.observe.health import HealthFinding, HealthRule
from strop.observe.run_files.run_history import History
from strop.types import Rollout

_MANY = 0.3  # of the rollouts that are read
_LEAST = 16  # rollouts
_SHOWN = 80  # letters of a completion, its end


class UnreadAnswer(HealthRule):
    """No rollout of the last quarter earned anything, and three of ten completions hold the answer as a word."""

    def judge(self, history: History) -> HealthFinding | None:
        read = [rollout for rollout in history.rollouts if rollout.turns and rollout.task.answer.strip()]
        if len(read) < _LEAST or any(rollout.reward > 0 for rollout in read):
            return None
        if any(group.right > 0 for group in history.late_groups(1 / 4)):
            return None
        holding = [rollout for rollout in read if _holds(rollout)]
        if len(holding) < _MANY * len(read):
            return None
        completion = holding[0].completion[-_SHOWN:]
        evidence = (
            f"{len(holding)} of {len(read)} completions of the last step hold the right answer and earned nothing, for "
            f"example {completion!r} where {holding[0].task.answer[-_SHOWN:]!r} is right"
        )
        remedy = "choose how answers are read (answer=number, boxed or math), or ask for bare answers in the prompt"
        return HealthFinding("answers that are not found", evidence, remedy, is_grave=True)


def _holds(rollout: Rollout) -> bool:
    """As a word of its own: 6 is not in 66."""
    answer = rollout.task.answer.strip().splitlines()[-1].removeprefix("#### ")
    return re.search(rf"(?<![\w.]){re.escape(answer)}(?![\w])", rollout.completion) is not None
