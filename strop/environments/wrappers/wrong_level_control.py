"""Several environments under levels that lie: which of them a task is from is left to probability, whatever level it
bears.

What a curriculum that chooses by level must lose by, and one that looks at tasks must not.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.roles import Environment, Episode
from strop.types import Message, Observation, Task


@dataclass(frozen=True)
class Mislabelled(Environment):
    """One such level; those of `lying` share the tasks of all environments, and no task is in two of them."""

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
        """Where a task really comes from, and what it is called there."""
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
    """The episode of whichever environment a task is from."""

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
    """As many levels as there are environments, none of which says anything."""
    return tuple(Mislabelled(envs, level, len(envs)) for level in range(len(envs)))
