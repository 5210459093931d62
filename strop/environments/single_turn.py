"""A world of one reply: the first answer ends the attempt and is paid by the world's own check."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from strop.roles import Environment
from strop.types import Message, Observation, Task


@runtime_checkable
class Solves(Protocol):
    """A world that can check a reply and knows a right one."""

    def check(self, task: Task, reply: str) -> float: ...
    def solution(self, task: Task) -> str: ...


@dataclass
class SingleTurn(Environment):
    """The environment of every world whose attempts are one reply long."""

    world: Solves
    pays: bool = True  # False: the check must run where it can be killed, so a reward asks for it
    task: Task = field(init=False, repr=False, compare=False)

    async def reset(self, task: Task) -> None:
        self.task = task

    async def step(self, reply: Message) -> Observation:
        return Observation(done=True, reward=self.world.check(self.task, reply.content) if self.pays else None)

    async def close(self) -> None:
        pass

    def demonstrate(self) -> Message:
        return Message("assistant", self.world.solution(self.task))
