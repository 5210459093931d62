"""Chain addition task: `47+12+30=?`, solved one partial sum at a time; the level sets how many digits and terms."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.data.heldout_split import draw, is_heldout, prompt_of, require_level
from strop.environments.format.think_tags import final_answer, final_number, sum_steps, think
from strop.environments.single_turn import SingleTurn
from strop.errors import ConfigurationError
from strop.roles import Environment
from strop.types import Message, Task

# level: (digits, terms); no two levels share a prompt
SHAPES = {1: (1, 2), 2: (1, 3), 3: (2, 2), 4: (2, 3), 5: (2, 4), 6: (3, 3), 7: (3, 4), 8: (4, 5)}


def terms_of(task: Task) -> list[int]:
    """The numbers to add, wherever in the prompt the sum stands."""
    found = re.search(r"\d+(?:\+\d+)+(?==\?)", prompt_of(task))
    if not found:
        raise ValueError(f"not a sum: {prompt_of(task)!r}")
    return [int(term) for term in found.group().split("+")]


@dataclass(frozen=True)
class Arithmetic(Environment):
    """Chain addition environment."""

    level: int
    seed: int = 0
    name: ClassVar[str] = "arithmetic"
    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_level(self.name, self.level, min(SHAPES), max(SHAPES))

    def task(self, index: int, heldout: bool = False) -> Task:
        return draw(f"{self.name}/{self.seed}/{self.level}/{index}", heldout, self._make)

    def episode(self) -> SingleTurn:
        return SingleTurn(self)

    def check(self, task: Task, completion: str) -> float:
        return float(final_answer(completion) == task.answer)

    def answer(self, completion: str) -> str:
        return final_number(completion)

    def solution(self, task: Task) -> str:
        steps, total = sum_steps(terms_of(task))
        return think(steps, str(total))

    def hint(self, task: Task, steps: int = 1) -> str:
        """The first steps of the working."""
        return " ".join(sum_steps(terms_of(task))[0][:steps])

    def relative(self, task: Task, key: int) -> Task:
        """Another sum that begins with the same two numbers; of two numbers there is none."""
        first, (_, count) = terms_of(task)[:2], SHAPES[self.level]
        if count < 3:
            raise ConfigurationError(f"sums of {self.name}:{self.level} have no relatives: need 3 numbers, got {count}")
        stream = f"{self.name}/{self.seed}/{self.level}/relative/{key}"
        return draw(stream, is_heldout(prompt_of(task)), lambda rng: self._make(rng, first))

    def _make(self, stream: random.Random, first: Sequence[int] = ()) -> Task:
        digits, count = SHAPES[self.level]
        terms = [*first, *(stream.randrange(10 ** (digits - 1), 10**digits) for _ in range(count - len(first)))]
        prompt = "+".join(map(str, terms)) + "=?"
        return Task((Message("user", prompt),), str(sum(terms)), self.name, self.level)
