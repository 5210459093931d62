"""Delegating environment wrapper, and an episode without reward."""

from __future__ import annotations

from dataclasses import dataclass

from strop.roles import Environment, Episode
from strop.types import Message, Observation, Task


@dataclass(frozen=True)
class Around(Environment):
    """Environment wrapper that delegates everything to `inner`; subclasses override what differs."""

    inner: Environment

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def level(self) -> int:
        return self.inner.level

    @property
    def is_inline(self) -> bool:
        return self.inner.is_inline

    @property
    def pays(self) -> bool:
        return self.inner.pays

    def task(self, index: int, heldout: bool = False) -> Task:
        return self.inner.task(index, heldout)

    def num_tasks(self, heldout: bool = False) -> int | None:
        return self.inner.num_tasks(heldout)

    def episode(self) -> Episode:
        return self.inner.episode()

    def check(self, task: Task, completion: str) -> float:
        return self.inner.check(task, completion)

    def answer(self, completion: str) -> str:
        return self.inner.answer(completion)


class Unpaid(Episode):
    """Single-turn episode without reward; the `Checked` reward scores the completion in a killable process."""

    async def reset(self, task: Task) -> None:
        pass

    async def step(self, completion: Message) -> Observation:
        return Observation(done=True)

    async def close(self) -> None:
        pass
