"""A world whose hints are about another of its tasks: what a hint is worth without its task, for negative controls."""

from __future__ import annotations

from dataclasses import dataclass

from strop.abilities import Hints
from strop.environments.of_task import other_task
from strop.errors import ConfigurationError
from strop.roles import Environment, World
from strop.types import Task


@dataclass(frozen=True)
class Misguided(World):
    """The world as it is; a hint shows how the working of another train task begins, the same one every time."""

    inner: World

    def __post_init__(self) -> None:
        if not isinstance(self.inner, Hints):
            raise ConfigurationError(f"Misguided needs a world with hints, and {self.inner.name} gives none")

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

    def hint(self, task: Task, steps: int = 1) -> str:
        assert isinstance(self.inner, Hints)
        return self.inner.hint(other_task((self.inner,), task), steps)
