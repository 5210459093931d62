"""Sums as an episode of somebody else, with two faults to choose from; it imports little and starts soon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.single_turn import SingleTurn
from strop.roles import Environment
from strop.types import Message, Task


@dataclass(frozen=True)
class Sums(Environment):
    """Sums, by index; `leaks` says the answer in the prompt, `shares` asks held-out ones that are trained on."""

    leaks: bool = False
    shares: bool = False
    level: ClassVar[int] = 1
    name: ClassVar[str] = "sums"
    is_inline: ClassVar[bool] = True

    def task(self, index: int, heldout: bool = False) -> Task:
        one, other = divmod((index * 37) % 200 + (200 if heldout and not self.shares else 0), 20)
        asked = f"{one + 11}+{other + 31}=?" + (f" (answer: {one + other + 42})" if self.leaks else "")
        return Task((Message("user", asked),), str(one + other + 42), self.name)

    def episode(self) -> SingleTurn:
        return SingleTurn(self)

    def solution(self, task: Task) -> str:
        return task.answer

    def check(self, task: Task, completion: str) -> float:
        return float(completion.strip() == task.answer)


@dataclass(frozen=True)
class Questions(Environment):
    """Numbered questions with these answers, by turns; what is `accepted` is right everywhere."""

    answers: tuple[str, ...]
    accepted: tuple[str, ...] = ()
    level: ClassVar[int] = 1
    name: ClassVar[str] = "questions"
    is_inline: ClassVar[bool] = True

    def task(self, index: int, heldout: bool = False) -> Task:
        side = "held out" if heldout else "asked"
        return Task(
            (Message("user", f"Question {index}, {side}?"),), self.answers[index % len(self.answers)], self.name
        )

    def episode(self) -> SingleTurn:
        return SingleTurn(self)

    def solution(self, task: Task) -> str:
        return task.answer

    def check(self, task: Task, completion: str) -> float:
        return float(completion == task.answer or completion in self.accepted)
