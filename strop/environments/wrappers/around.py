"""Environments around another one: delegation, and tasks that pay nothing."""

from __future__ import annotations

from dataclasses import dataclass

from strop.roles import Environment, Episode
from strop.types import Message, Observation, Task

# An environment around another one, for environments that differ from theirs in one thing.


@dataclass(frozen=True)
class Around(Environment):
    """Everything as it is in `inner`, but for what a subclass says."""

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


# An environment of one completion that pays nothing itself: its checker is not ours and must run where it can be
# killed.


class Unpaid(Episode):
    """The first completion ends the rollout; the `Checked` reward says what it is worth."""

    async def reset(self, task: Task) -> None:
        pass

    async def step(self, completion: Message) -> Observation:
        return Observation(done=True)

    async def close(self) -> None:
        pass
