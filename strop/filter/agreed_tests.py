"""Tests that advisers write (HardTests, 2505.24098), kept where a validator allows them and oracles agree on them.

Readings: what a validator or an oracle says is found by running its program in the box. Two programs of the same text
are one oracle; with one oracle alone its word counts.
Papers: hardtests
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from strop.environments.code_execution import Cases, Trials
from strop.errors import AdviserError, ConfigurationError
from strop.filter.judges.batch_ask import all_of, text_of
from strop.filter.judges.rubric import answer
from strop.roles import Adviser
from strop.text.llm_prompt import question
from strop.types import Task

_INPUTS = "Write inputs to test programs for this task with: a JSON list."
_VALID = "Write f(x) that says whether x is an input that this task allows."
_SOLVED = "Write a program for this task."
_AGREED = 2  # oracles that must give the same output
_TRUE = '["value", true]'


@dataclass(frozen=True)
class AgreedTests:
    """Who writes inputs, who validates them and who says what should come."""

    writers: tuple[Adviser, ...]
    validator: Adviser
    oracles: tuple[Adviser, ...]

    def __post_init__(self) -> None:
        if not self.writers or not self.oracles:
            raise ConfigurationError(
                f"tests need a writer and an oracle at least, got {len(self.writers)} and {len(self.oracles)}"
            )

    async def __call__(self, task: Task, function: str, trials: Trials) -> tuple[Cases, int]:
        """The tests, and how many inputs were written for them."""
        written = await self._inputs(task)
        programs = await all_of(answer(each, question(_SOLVED, task=text_of(task))) for each in self.oracles)
        valid = await answer(self.validator, question(_VALID, task=text_of(task)))
        allowed = await trials.said(valid, function, [[each] for each in written])
        inputs = [each for each, word in zip(written, allowed, strict=False) if word == _TRUE]
        said = [await trials.said(text, function, [[each] for each in inputs]) for text in dict.fromkeys(programs)]
        outputs = [
            agreed([lines[place] for lines in said if place < len(lines)], len(said)) for place in range(len(inputs))
        ]
        kept = [(given, output) for given, output in zip(inputs, outputs, strict=True) if output is not None]
        if not kept:
            raise AdviserError(f"no test of {len(written)} for task {task.id} is one that oracles agree on")
        return Cases(function, tuple([given] for given, _ in kept), tuple(json.loads(out)[1] for _, out in kept)), len(
            written
        )

    async def _inputs(self, task: Task) -> list[Any]:
        """Each once, in the order in which they were written; an answer that is no list gives none."""
        told = await all_of(answer(each, question(_INPUTS, task=text_of(task))) for each in self.writers)
        found = [each for text in told for each in _listed(text)]
        return [each for place, each in enumerate(found) if each not in found[:place]]


def agreed(said: Sequence[str], oracles: int) -> str | None:
    """What at least two oracles say, or the only one there is; what failed says nothing."""
    values = [each for each in said if _is_value(each)]
    if not values:
        return None
    (most, count), *rest = Counter(values).most_common()
    is_tied = bool(rest) and rest[0][1] == count
    return most if count >= min(_AGREED, oracles) and not is_tied else None


def _is_value(line: str) -> bool:
    """Whether a line says a value, whole and spelled as the box spells it: what an oracle prints may be cut off."""
    try:
        return json.dumps(["value", json.loads(line)[1]]) == line
    except (ValueError, RecursionError, TypeError, LookupError):
        return False


def _listed(text: str) -> list[Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) else []
