"""Critique task: a function's description and a program for it; the answer is T if the program is right, F if not.

From Critique-Coder (2509.22824). Half of the programs are reference solutions, the others have one altered step; labels
follow from the meaning of the steps on the function's tests, so nothing is executed. During training the recipe
(`recipes/reward/critique_coder.py`) asks the same question about the policy's own programs; the tasks here serve for
warm-up and evaluation.

Papers: critique-coder
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, replace
from typing import ClassVar

from strop.environments.bundled.programs import DOMAINS, FUNCTION, SHAPES, Step, drawn, head, meant, written
from strop.environments.data.heldout_split import draw, require_level
from strop.environments.single_turn import SingleTurn
from strop.roles import Environment
from strop.types import Message, Task

_CONCLUSION = re.compile(r"conclusion:[ ]?\{([^{}\n]{0,40})\}")
_SHOWN = 2
_TRUE, _FALSE = "T", "F"


@dataclass(frozen=True)
class Critiques(Environment):
    """Critique environment; levels are those of `programs`."""

    level: int
    seed: int = 0
    name: ClassVar[str] = "critiques"
    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_level(self.name, self.level, min(SHAPES), max(SHAPES))

    def task(self, index: int, heldout: bool = False) -> Task:
        """As many are right as wrong: one letter for all earns a half."""
        key = f"{self.name}/{self.seed}/{self.level}/{index}"
        return draw(key, heldout, lambda stream: self._make(stream, is_right=index % 2 == 0))

    def episode(self) -> SingleTurn:
        return SingleTurn(self)

    def check(self, task: Task, completion: str) -> float:
        return float(self.answer(completion) == task.answer)

    def answer(self, completion: str) -> str:
        """The last conclusion, where it is one of both letters."""
        said = _CONCLUSION.findall(completion)
        letter = said[-1].strip() if said else ""
        return concluded(letter == _TRUE) if letter in (_TRUE, _FALSE) else ""

    def solution(self, task: Task) -> str:
        return task.answer

    def _make(self, stream: random.Random, is_right: bool) -> Task:
        steps, inputs, outputs = drawn(self.level, stream)
        program = steps
        while not is_right and [meant(program, each) for each in inputs] == outputs:
            program = changed(steps, self.level, stream)
        calls = " ".join(f"{FUNCTION}({x!r})={y!r}" for x, y in zip(inputs[:_SHOWN], outputs, strict=False))
        asked = shown(f"{head()} {', '.join(step.words for step in steps)}. {calls}", written(program))
        return Task((Message("user", asked),), concluded(is_right), self.name, self.level)


def shown(question: str, program: str) -> str:
    return f"{question}\n{program}\nright?"


def concluded(is_right: bool) -> str:
    return f"conclusion: {{{_TRUE if is_right else _FALSE}}}"


def changed(steps: list[Step], level: int, stream: random.Random) -> list[Step]:
    """One step that takes and gives the same kind of value, with another one in its place."""
    domain = DOMAINS[SHAPES[level][0]]
    at = stream.randrange(len(steps))
    others = domain.ends if steps[at] in domain.ends else domain.steps(stream.randint(2, 9))
    other = replace(stream.choice(others), words=steps[at].words)
    return [*steps[:at], other, *steps[at + 1 :]]
