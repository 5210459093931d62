"""Any world as yes or no: Curr-ReFT's first stage (2503.07065) shows an answer and asks whether it is right.

Reading: a wrong answer is that of another task of the same world; half of all are right, so that guessing earns 1/2.
Papers: curr-reft
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.easier import asked, check_single, key_of, worked, wrong_answers
from strop.environments.scratchpad import final_answer
from strop.environments.single_turn import SingleTurn
from strop.roles import World
from strop.types import Task


@dataclass(frozen=True)
class Judged(World):
    """`47+12=? is it 59?`, and the reply is yes or no."""

    world: World

    is_inline: ClassVar[bool] = True  # nothing is asked of the world but its tasks

    def __post_init__(self) -> None:
        check_single(self.world)

    @property
    def name(self) -> str:
        return f"judged-{self.world.name}"

    @property
    def level(self) -> int:
        return self.world.level

    def task(self, index: int, heldout: bool = False) -> Task:
        inner = self.world.task(index, heldout)
        is_right = random.Random(f"judged/{inner.id}").random() < 0.5
        shown = inner.answer if is_right else next(wrong_answers(self.world, index, heldout))
        return asked(inner, f"is it {shown}?", "yes" if is_right else "no", self.name)

    def num_tasks(self, heldout: bool = False) -> int | None:
        return self.world.num_tasks(heldout)

    def environment(self) -> SingleTurn:
        return SingleTurn(self)

    def check(self, task: Task, reply: str) -> float:
        return float(self.answer(reply) == key_of(task))

    def answer(self, reply: str) -> str:
        said = final_answer(reply)
        return said if said in ("yes", "no") else ""

    def solution(self, task: Task) -> str:
        return worked(self.world, task)
