"""Single-turn episode: the first completion ends the rollout and is rewarded by the environment's own check."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from strop.roles import Episode
from strop.types import Message, Observation, Task


@runtime_checkable
class Solves(Protocol):
    """Environment that can check a completion and provides a right one."""

    def check(self, task: Task, completion: str) -> float: ...
    def solution(self, task: Task) -> str: ...


@dataclass
class SingleCompletion(Episode):
    """Episode of a single-turn environment, which knows what is right and shows no way to it."""

    env: Solves
    pays: bool = True  # False: the check must run where it can be killed, so a reward asks for it
    task: Task = field(init=False, repr=False, compare=False)

    async def reset(self, task: Task) -> None:
        self.task = task

    async def step(self, completion: Message) -> Observation:
        return Observation(done=True, reward=self.env.check(self.task, completion.content) if self.pays else None)

    async def close(self) -> None:
        pass


@dataclass
class SingleTurn(SingleCompletion):
    """Episode of a single-turn environment that demonstrates its solutions."""

    def demonstrate(self) -> Message:
        return Message("assistant", self.env.solution(self.task))
