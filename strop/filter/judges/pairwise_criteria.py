"""Pairwise comparison by criteria (OpenRS): the judge's prompt, the parser of its answer, and the weighted sum.

A line names a kind, a winner and a strength: `core, first, 3: It shows its working.`
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from strop.filter.judges.batch_ask import Lines, text_of, unread, verdict
from strop.roles import LLMClient
from strop.text.llm_prompt import judgement
from strop.types import Task

FATAL = "fatal"
WEIGHTS = {"core": 5.0, "important": 2.0, "highlight": 1.0}
ASKED = (
    "Find where the first and the second completion differ, and make a criterion of each difference. Call it fatal "
    "where a "
    "completion is worthless for it, core where it decides about the task, important where it helps, highlight where "
    "it is "
    "only pleasant. One line each, with the winner and by how much, from 0 to 5, as in core, first, 3: It is right."
)
_LINE = re.compile(
    rf"[ \t*-]*({FATAL}|{'|'.join(WEIGHTS)})[ \t]*,[ \t]*(first|second)[ \t]*,[ \t]*"
    r"(\d(?:\.\d{1,6})?)[ \t]*:[ \t]*\S.*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Distinction:
    """Result for one criterion; `value` is positive if the first completion is better."""

    kind: str
    value: float


def differences_in(text: str) -> list[Distinction]:
    """The lines of an answer that name one; of strength 0 where both are alike."""
    found = [_LINE.fullmatch(line.rstrip()) for line in text.splitlines()]
    read = [(each.group(1).lower(), each.group(2).lower(), float(each.group(3))) for each in found if each]
    return [Distinction(kind, size if who == "first" else -size) for kind, who, size in read]


def preference(found: Sequence[Distinction]) -> float:
    """Fatal ones alone where there are any, else the weighted mean: above 0 where the first completion is better.

    Criteria on which both are alike weigh nothing.
    """
    said = [each for each in found if each.value]
    if fatal := [each.value for each in said if each.kind == FATAL]:
        return sum(fatal)
    total = sum(WEIGHTS[each.kind] for each in said)
    return sum(WEIGHTS[each.kind] * each.value for each in said) / total if total else 0.0


async def compared(task: Task, first: str, second: str, judge: LLMClient) -> float:
    """1 where the first completion wins in both orders, 0 where the second does, else 1/2."""
    sides = [await _preferred(task, *order, judge) for order in ((first, second), (second, first))]
    one, other = sides[0], -sides[1]
    return 1.0 if min(one, other) > 0 else 0.0 if max(one, other) < 0 else 0.5


async def _preferred(task: Task, first: str, second: str, judge: LLMClient) -> float:
    said = await verdict(judge, judgement(ASKED, task=text_of(task), first=first, second=second), Lines(_LINE))
    if not (found := differences_in(said)):
        raise unread(judge, said, "there is no criterion with a winner and a strength in")
    return preference(found)
