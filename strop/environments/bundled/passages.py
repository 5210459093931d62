"""Retrieval-augmented sums with citations: `47+12+30=? hint: 59+30=89 20+31=51 47+12=59`, some of them distractors.

A stand-in for RAG-RL's question answering (2503.12759): gold passages are the steps of the sum's own solution. A
passage counts as cited if the chain of thought contains it, so their order carries no information. At level l a sum
with j gold passages has min(max(l + 2 - j, 0), 8) distractors.

Papers: rag-rl
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from strop.environments.bundled.arithmetic import terms_of
from strop.environments.data.heldout_split import draw, is_heldout, prompt_of, require_level
from strop.environments.format.think_tags import CLOSE, OPEN, final_answer, final_number, sum_steps, think
from strop.environments.single_turn import SingleTurn
from strop.roles import Environment
from strop.types import Message, Task

_MOST = 8  # passages that lead nowhere
_HINT = " hint: "  # a word that the bundled model has seen before steps


class Cited(NamedTuple):
    """Passages cited by a completion."""

    gold: int  # gold passages that it quotes
    of: int  # gold passages there are
    wrong: int  # others that it quotes


@dataclass(frozen=True)
class Passages(Environment):
    """Environment of sums with passages; three or four two-digit numbers, so two or three passages are gold."""

    level: int
    seed: int = 0
    name: ClassVar[str] = "passages"
    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_level(self.name, self.level, 1, _MOST)

    def task(self, index: int, heldout: bool = False) -> Task:
        """Both the sum alone and the sum with its passages are on the same side."""
        key = f"{self.name}/{self.seed}/{self.level}/{index}"
        return draw(key, heldout, lambda stream: self._make(stream, heldout))

    def episode(self) -> SingleTurn:
        return SingleTurn(self)

    def check(self, task: Task, completion: str) -> float:
        return float(final_answer(completion) == task.answer)

    def answer(self, completion: str) -> str:
        return final_number(completion)

    def solution(self, task: Task) -> str:
        return think(gold_of(task), task.answer)

    def _make(self, stream: random.Random, heldout: bool) -> Task:
        while is_heldout(question := "+".join(map(str, terms := _terms(stream))) + "=?") != heldout:
            pass
        shown = sum_steps(terms)[0]
        count = len(shown) + min(max(self.level + 2 - len(shown), 0), _MOST)
        while len(shown) < count:
            other = stream.choice(sum_steps(_terms(stream))[0])
            shown += [other] if other not in shown else []
        stream.shuffle(shown)
        prompt = question + _HINT + " ".join(shown)
        return Task((Message("user", prompt),), str(sum(terms)), self.name, self.level)


def gold_of(task: Task) -> list[str]:
    return sum_steps(terms_of(task))[0]


def cited(task: Task, completion: str) -> Cited:
    """Which of the task's passages the working of a completion quotes."""
    gold, shown = set(gold_of(task)), set(prompt_of(task).partition(_HINT)[2].split())
    quoted = shown & set(completion.rpartition(CLOSE)[0].removeprefix(OPEN).split())
    return Cited(len(quoted & gold), len(gold), len(quoted - gold))


def _terms(stream: random.Random) -> list[int]:
    return [stream.randrange(10, 100) for _ in range(stream.choice((3, 4)))]
