"""Nothing is ever right, and the right answer stands in the replies: the rule that reads answers does not find it."""

from __future__ import annotations

import re

from strop.observe.health import HealthRule, RunVerdict
from strop.observe.run_files.run_history import History
from strop.types import Trajectory

_MANY = 0.3  # of the attempts that are read
_LEAST = 16  # attempts
_SHOWN = 80  # letters of a reply, its end


class UnreadAnswer(HealthRule):
    """No attempt of the last quarter earned anything, and three of ten replies hold the answer as a word."""

    def judge(self, history: History) -> RunVerdict | None:
        read = [attempt for attempt in history.attempts if attempt.turns and attempt.task.answer.strip()]
        if len(read) < _LEAST or any(attempt.reward > 0 for attempt in read):
            return None
        if any(group.right > 0 for group in history.late_groups(1 / 4)):
            return None
        holding = [attempt for attempt in read if _holds(attempt)]
        if len(holding) < _MANY * len(read):
            return None
        reply = holding[0].reply[-_SHOWN:]
        evidence = (
            f"{len(holding)} of {len(read)} replies of the last step hold the right answer and earned nothing, for "
            f"example {reply!r} where {holding[0].task.answer[-_SHOWN:]!r} is right"
        )
        remedy = "choose how answers are read (answer=number, boxed or math), or ask for bare answers in the prompt"
        return RunVerdict("answers that are not found", evidence, remedy, is_grave=True)


def _holds(attempt: Trajectory) -> bool:
    """As a word of its own: 6 is not in 66."""
    answer = attempt.task.answer.strip().splitlines()[-1].removeprefix("#### ")
    return re.search(rf"(?<![\w.]){re.escape(answer)}(?![\w])", attempt.reply) is not None
