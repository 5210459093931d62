"""Mathematical equivalence of a completion's answer and the gold answer, by the math-verify package (Hugging Face).

The package's own time limits turn a slow comparison into "wrong" silently, and need the main thread; they are off here,
because the worker's deadline ends slow comparisons, and `filter/overruns.py` finds whose fault that is.

A percent sign has one meaning. The package takes 12% and 1200% for 12; here the sign is a unit, so that only 12% is 12,
unless the answer has a percent sign itself or is a share (from -1 to 1): then 12% is 0.12.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from math_verify import parse, verify
from sympy import Basic, Number, Rational, UnevaluatedExpr

from strop.roles import Reward
from strop.types import Group, ScoreRange


@dataclass(frozen=True)
class MathVerify(Reward):
    """1 if the last completion is mathematically equal to the task's answer, else 0."""

    weight: float = 1.0

    grades: ClassVar[ScoreRange | None] = ScoreRange()

    def open_resources(self) -> None:
        """Build grammars and caches before any rollout's clock runs."""
        verify(parse("$1/2$", parsing_timeout=None), parse("0.5", parsing_timeout=None), timeout_seconds=None)

    def __call__(self, group: Group) -> list[float]:
        gold = parse(_as_math(group.task.answer), parsing_timeout=None)
        if not gold:
            raise ValueError(f"the answer {group.task.answer!r} of task {group.task.id} is no mathematics")
        completions = (parse(rollout.completion, parsing_timeout=None) for rollout in group.rollouts)
        return [float(verify(gold, _united(completion, gold), timeout_seconds=None)) for completion in completions]


def _as_math(answer: str) -> str:
    """An answer that stands alone is read as one expression, not searched for one."""
    return answer if "$" in answer or "\\boxed" in answer else f"${answer}$"


_HUNDREDTH = UnevaluatedExpr(Rational(1, 100))  # how the package writes a percent sign


def _united(completion: Sequence[Any], gold: Sequence[Any]) -> list[Any]:
    """A completion whose percent signs are units, where the answer neither has one nor is a share."""
    if any(_has_percent(each) or _is_share(each) for each in gold):
        return list(completion)
    return [
        each.replace(_is_percent, lambda found: found.args[0]) if _has_percent(each) else each for each in completion
    ]


def _has_percent(parsed: Any) -> bool:
    return isinstance(parsed, Basic) and bool(parsed.has(UnevaluatedExpr))


def _is_percent(parsed: Any) -> bool:
    return bool(parsed.is_Mul) and len(parsed.args) == 2 and parsed.args[1] == _HUNDREDTH


def _is_share(parsed: Any) -> bool:
    return isinstance(parsed, Number) and bool(abs(parsed) <= 1)
