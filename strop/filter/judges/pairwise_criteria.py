"""Pairwise comparison by criteria (OpenRS): the judge's prompt, the parser of its answer, and the weighted sum.

A line names a kind, a winner and a strength: `core, first, 3: It shows its working.`
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from strop.filter.judges.batch_ask import judged, text_of
from strop.filter.judges.readers import OneWord, plain
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
    rf"\W*(?:\d{{1,3}}[.)]\W*)?({FATAL}|{'|'.join(WEIGHTS)})\W+(?:the\W+)?(first|second)\b(?:\W+completion)?\D{{0,12}}"
    r"(\d(?:\.\d{1,6})?)\b.*",
    re.IGNORECASE,
)
_WINNER = OneWord({"first": 1.0, "second": -1.0, "tie": 0.0, "equal": 0.0})


@dataclass(frozen=True)
class Distinction:
    """Result for one criterion; `value` is positive if the first completion is better."""

    kind: str
    value: float


def differences_in(text: str) -> list[Distinction]:
    """The lines of an answer that name one; of strength 0 where both are alike."""
    spoken = plain(text)
    lines = [_LINE.fullmatch(line) for line in spoken.splitlines()]
    read = _json_rows(spoken) or [(each[1], each[2], each[3]) for each in lines if each]
    found = [(str(kind).lower(), str(who).lower(), min(float(size), 5.0)) for kind, who, size in read]
    return [Distinction(kind, size if who == "first" else -size) for kind, who, size in found]


def _json_rows(spoken: str) -> list[tuple[str, str, str]]:
    """Kind, winner and strength of each row of a JSON array, by the usual names."""
    try:
        rows = json.loads(spoken[spoken.index("[") : spoken.rindex("]") + 1])
    except (ValueError, RecursionError):
        return []
    found = []
    for row in rows:
        said = [str(each).strip() for each in row.values()] if isinstance(row, dict) else []
        kind = next((each for each in said if each.lower() in (FATAL, *WEIGHTS)), "")
        who = next((each for each in said if each.lower() in ("first", "second")), "")
        size = next((each for each in said if re.fullmatch(r"\d(?:\.\d{1,6})?", each)), "")
        found += [(kind, who, size)] if kind and who and size else []
    return found


@dataclass(frozen=True)
class Distinctions:
    """Reader of all distinctions, or of a winner alone, whose criterion then is a core one."""

    def read(self, text: str) -> list[Distinction] | None:
        if found := differences_in(text):
            return found
        winner = _WINNER.read(text)
        return None if winner is None else [Distinction("core", winner)]

    def quote(self, text: str) -> str:
        return "" if differences_in(text) else _WINNER.quote(text)

    def fullmatch(self, text: str, /) -> bool:
        spoken = plain(text)
        lines = [line for line in spoken.splitlines() if line.strip()]
        is_all = bool(lines) and all(_LINE.fullmatch(line) for line in lines)
        return is_all or (bool(_json_rows(spoken)) and spoken[:1] == "[") or _WINNER.fullmatch(text)


def preference(found: Sequence[Distinction]) -> float:
    """Fatal ones alone where there are any, else the weighted mean: above 0 where the first completion is better.

    Criteria on which both are alike weigh nothing.
    """
    said = [each for each in found if each.value]
    if fatal := [each.value for each in said if each.kind == FATAL]:
        return sum(fatal)
    total = sum(WEIGHTS[each.kind] for each in said)
    return sum(WEIGHTS[each.kind] * each.value for each in said) / total if total else 0.0


async def compared(task: Task, first: str, second: str, judge: LLMClient, prompt: str = ASKED) -> float:
    """1 where the first completion wins in both orders, 0 where the second does, else 1/2."""
    sides = [await _preferred(task, *order, judge, prompt) for order in ((first, second), (second, first))]
    one, other = sides[0], -sides[1]
    return 1.0 if min(one, other) > 0 else 0.0 if max(one, other) < 0 else 0.5


async def _preferred(task: Task, first: str, second: str, judge: LLMClient, prompt: str) -> float:
    asked = judgement(prompt, task=text_of(task), first=first, second=second)
    return preference(await judged(judge, asked, Distinctions()))
