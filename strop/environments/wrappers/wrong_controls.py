"""Negative-control environments: wrong answer keys, hints of other tasks, uninformative levels."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import ClassVar

from strop.capabilities import Hints
from strop.environments.data.lookup import other_task
from strop.environments.wrappers.around import Around
from strop.errors import ConfigurationError
from strop.roles import Environment, Episode
from strop.types import Message, Observation, Task

# Tasks with a wrong key look like all others and cannot be solved: a test of curricula with per-task statistics, since
# source and level carry no information.


@dataclass(frozen=True)
class Miskeyed(Around):
    """Pool of the first `tasks` of an environment, `share` of them with a wrong answer key; held-out tasks are
    unchanged.
    """

    tasks: int = 256
    share: float = 0.5  # of tasks that cannot be solved

    def __post_init__(self) -> None:
        if self.tasks < 1 or not 0 <= self.share <= 1:
            raise ConfigurationError(
                f"Miskeyed needs tasks >= 1 and a share from 0 to 1, got {self.tasks} and {self.share}"
            )

    def task(self, index: int, heldout: bool = False) -> Task:
        if heldout:
            return self.inner.task(index, heldout=True)
        place = index % self.tasks
        task = self.inner.task(place)
        return replace(task, answer=self._foreign(place, task), id="") if self.is_broken(place) else task

    def num_tasks(self, heldout: bool = False) -> int | None:
        return self.inner.num_tasks(heldout=True) if heldout else self.tasks

    def is_broken(self, place: int) -> bool:
        """Whether a task has a wrong key: exactly `share` of all, in random order."""
        order = list(range(self.tasks))
        random.Random(f"miskeyed/{self.tasks}").shuffle(order)
        return order[place] < round(self.share * self.tasks)

    def _foreign(self, place: int, task: Task) -> str:
        """The key of a task outside of the pool, by which the completion to this one is wrong."""
        keys = (self.inner.task(self.tasks + place + further).answer for further in range(100))
        right = self.inner.answer(task.answer)
        return next(key for key in keys if self.inner.answer(key) != right)


@dataclass(frozen=True)
class Misguided(Around):
    """Environment whose hints are the first steps of another train task, always the same one per task."""

    def __post_init__(self) -> None:
        if not isinstance(self.inner, Hints):
            raise ConfigurationError(f"Misguided needs an environment with hints, and {self.inner.name} gives none")

    def hint(self, task: Task, steps: int = 1) -> str:
        assert isinstance(self.inner, Hints)
        return self.inner.hint(other_task((self.inner,), task), steps)


# Levels without information: each task's environment is random, whatever its level. Curricula by level must lose
# against curricula by task here.


@dataclass(frozen=True)
class Mislabelled(Environment):
    """One uninformative level; all levels of `lying` mix the tasks of all environments, without overlap."""

    envs: tuple[Environment, ...]
    level: int
    levels: int  # how many there are: 0 to levels - 1
    name: ClassVar[str] = "mislabelled"

    def __post_init__(self) -> None:
        if len(self.envs) < 2 or not 0 <= self.level < self.levels:
            raise ConfigurationError(
                f"Mislabelled needs 2 environments and a level below {self.levels}, got {len(self.envs)} and "
                f"{self.level}"
            )

    @property
    def is_inline(self) -> bool:
        return all(env.is_inline for env in self.envs)

    @property
    def pays(self) -> bool:
        return all(env.pays for env in self.envs)

    def task(self, index: int, heldout: bool = False) -> Task:
        place = random.Random(f"mislabelled/{self.level}/{index}/{heldout}").randrange(len(self.envs))
        task = self.envs[place].task(index * self.levels + self.level, heldout)
        # the environment that knows the answer is told with it: a task has no other place that the policy does not see
        return replace(task, answer=f"{place} {task.answer}", source=self.name, level=self.level, id="")

    def true(self, task: Task) -> tuple[Environment, Task]:
        """The environment that a task really comes from, and the task as it is there."""
        place, _, answer = task.answer.partition(" ")
        env = self.envs[int(place)]
        return env, replace(task, answer=answer, source=env.name, level=env.level, id="")

    def episode(self) -> Episode:
        return TrueEnvironment(self)

    def check(self, task: Task, completion: str) -> float:
        env, known = self.true(task)
        return env.check(known, completion)


@dataclass
class TrueEnvironment(Episode):
    """Episode of the environment that a task really comes from."""

    env: Mislabelled
    inner: Episode | None = None

    async def reset(self, task: Task) -> None:
        env, known = self.env.true(task)
        self.inner = env.episode()
        await self.inner.reset(known)

    async def step(self, completion: Message) -> Observation:
        assert self.inner is not None
        return await self.inner.step(completion)

    async def close(self) -> None:
        if self.inner is not None:
            await self.inner.close()


def lying(envs: tuple[Environment, ...]) -> tuple[Mislabelled, ...]:
    """As many uninformative levels as there are environments."""
    return tuple(Mislabelled(envs, level, len(envs)) for level in range(len(envs)))
