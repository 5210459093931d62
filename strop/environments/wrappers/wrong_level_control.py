"""Several worlds under levels that lie: which of them a task is from is left to chance, whatever level it bears.

What a curriculum that chooses by level must lose by, and one that looks at tasks must not.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.roles import Environment, World
from strop.types import Message, Observation, Task


@dataclass(frozen=True)
class Mislabelled(World):
    """One such level; those of `lying` share the tasks of all worlds, and no task is in two of them."""

    worlds: tuple[World, ...]
    level: int
    levels: int  # how many there are: 0 to levels - 1
    name: ClassVar[str] = "mislabelled"

    def __post_init__(self) -> None:
        if len(self.worlds) < 2 or not 0 <= self.level < self.levels:
            raise ConfigurationError(
                f"Mislabelled needs 2 worlds and a level below {self.levels}, got {len(self.worlds)} and {self.level}"
            )

    @property
    def is_inline(self) -> bool:
        return all(world.is_inline for world in self.worlds)

    @property
    def pays(self) -> bool:
        return all(world.pays for world in self.worlds)

    def task(self, index: int, heldout: bool = False) -> Task:
        place = random.Random(f"mislabelled/{self.level}/{index}/{heldout}").randrange(len(self.worlds))
        task = self.worlds[place].task(index * self.levels + self.level, heldout)
        # the world that knows the answer is told with it: a task has no other place that the policy does not see
        return replace(task, answer=f"{place} {task.answer}", source=self.name, level=self.level, id="")

    def true(self, task: Task) -> tuple[World, Task]:
        """Where a task really comes from, and what it is called there."""
        place, _, answer = task.answer.partition(" ")
        world = self.worlds[int(place)]
        return world, replace(task, answer=answer, source=world.name, level=world.level, id="")

    def environment(self) -> Environment:
        return TrueWorld(self)

    def check(self, task: Task, reply: str) -> float:
        world, known = self.true(task)
        return world.check(known, reply)


@dataclass
class TrueWorld(Environment):
    """The environment of whichever world a task is from."""

    world: Mislabelled
    inner: Environment | None = None

    async def reset(self, task: Task) -> None:
        world, known = self.world.true(task)
        self.inner = world.environment()
        await self.inner.reset(known)

    async def step(self, reply: Message) -> Observation:
        assert self.inner is not None
        return await self.inner.step(reply)

    async def close(self) -> None:
        if self.inner is not None:
            await self.inner.close()


def lying(worlds: tuple[World, ...]) -> tuple[Mislabelled, ...]:
    """As many levels as there are worlds, none of which says anything."""
    return tuple(Mislabelled(worlds, level, len(worlds)) for level in range(len(worlds)))
