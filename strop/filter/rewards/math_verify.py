"""Whether the mathematics of a reply equals the answer's, by the math-verify package (Hugging Face).

The package's own time limits turn a slow comparison into "wrong" without a word, and need the main thread; they are
off here, because the worker's deadline ends what takes too long and calls it a failure.
"""

from __future__ import annotations

from dataclasses import dataclass

from math_verify import parse, verify

from strop.roles import Reward
from strop.types import Group


@dataclass(frozen=True)
class MathVerify(Reward):
    """1 where the last reply is mathematically equal to the task's answer, 0 where it is not or says nothing."""

    weight: float = 1.0

    def open(self) -> None:
        """Build grammars and caches before any attempt's clock runs."""
        verify(parse("$1/2$", parsing_timeout=None), parse("0.5", parsing_timeout=None), timeout_seconds=None)

    def __call__(self, group: Group) -> list[float]:
        gold = parse(_as_math(group.task.answer), parsing_timeout=None)
        if not gold:
            raise ValueError(f"the answer {group.task.answer!r} of task {group.task.id} is no mathematics")
        replies = (parse(attempt.reply, parsing_timeout=None) for attempt in group.trajectories)
        return [float(verify(gold, reply, timeout_seconds=None)) for reply in replies]


def _as_math(answer: str) -> str:
    """An answer that stands alone is read as one expression, not searched for one."""
    return answer if "$" in answer or "\\boxed" in answer else f"${answer}$"
