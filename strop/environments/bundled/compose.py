"""Composed string functions: `rev(rot(abcd))=?`, evaluated from the innermost outwards; the level is the nesting depth.

Tests compositional generalization: a policy may know every function and still fail on f(g(x)).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.data.heldout_split import draw, prompt_of, require_level
from strop.environments.format.think_tags import final_answer, think
from strop.environments.single_turn import SingleTurn
from strop.roles import Environment
from strop.types import Message, Task

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_DEEPEST = 4
# `drop` shortens by one, so a chain of them on the shortest string still leaves a letter at the deepest level
_SHORTEST, _LONGEST = 5, 6
_NEXT = str.maketrans(_LETTERS, _LETTERS[1:] + _LETTERS[0])

FUNCTIONS: Mapping[str, Callable[[str], str]] = {
    "rev": lambda text: text[::-1],
    "rot": lambda text: text[1:] + text[:1],
    "swap": lambda text: text[-1:] + text[1:-1] + text[:1] if len(text) > 1 else text,
    "dup": lambda text: text[:1] + text,
    "drop": lambda text: text[1:],
    "inc": lambda text: text.translate(_NEXT),
}


def parse(prompt: str) -> tuple[list[str], str]:
    """The functions, innermost first, and the string they work on."""
    found = re.search(r"((?:[a-z]+\()+)([a-z]+)\)+=\?", prompt)
    if not found:
        raise ValueError(f"not a composition: {prompt!r}")
    return found.group(1).split("(")[-2::-1], found.group(2)


def steps_of(names: list[str], text: str, slip: Callable[[str], str] = lambda right: right) -> tuple[list[str], str]:
    """The working, one function a step, and the result; `slip` may change a step, and the error is carried on."""
    steps = []
    for name in names:
        result = slip(FUNCTIONS[name](text))
        steps.append(f"{name}({text})={result}")
        text = result
    return steps, text


@dataclass(frozen=True)
class Compose(Environment):
    """Environment of composed string functions."""

    level: int
    seed: int = 0
    name: ClassVar[str] = "compose"
    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_level(self.name, self.level, 1, _DEEPEST)

    def task(self, index: int, heldout: bool = False) -> Task:
        return draw(f"{self.name}/{self.seed}/{self.level}/{index}", heldout, self._make)

    def episode(self) -> SingleTurn:
        return SingleTurn(self)

    def check(self, task: Task, completion: str) -> float:
        return float(final_answer(completion) == task.answer)

    def answer(self, completion: str) -> str:
        """A word of small letters."""
        answer = final_answer(completion)
        return answer if answer.isascii() and answer.isalpha() and answer.islower() else ""

    def solution(self, task: Task) -> str:
        return think(*steps_of(*parse(prompt_of(task))))

    def hint(self, task: Task, steps: int = 1) -> str:
        """The first steps of the working."""
        return " ".join(steps_of(*parse(prompt_of(task)))[0][:steps])

    def _make(self, stream: random.Random) -> Task:
        names = [stream.choice(list(FUNCTIONS)) for _ in range(self.level)]
        text = "".join(stream.choice(_LETTERS) for _ in range(stream.randint(_SHORTEST, _LONGEST)))
        prompt = "(".join(reversed(names)) + f"({text}" + ")" * self.level + "=?"
        return Task((Message("user", prompt),), steps_of(names, text)[1], self.name, self.level)
