"""A world around another one, for worlds that differ from theirs in one thing."""

from __future__ import annotations

from dataclasses import dataclass

from strop.roles import Environment, World
from strop.types import Task


@dataclass(frozen=True)
class Around(World):
    """Everything as it is in `inner`, but for what a subclass says."""

    inner: World

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

    def environment(self) -> Environment:
        return self.inner.environment()

    def check(self, task: Task, reply: str) -> float:
        return self.inner.check(task, reply)

    def answer(self, reply: str) -> str:
        return self.inner.answer(reply)
