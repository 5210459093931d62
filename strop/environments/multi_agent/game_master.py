"""Playpen's game master (2504.08590): a reply that is no move ends a game, and that is not the same as to lose it.

Papers: playpen
"""

from __future__ import annotations

from dataclasses import dataclass

from strop.environments.format.demonstrations import demonstrating
from strop.environments.wrappers.around import Around
from strop.roles import Environment, World
from strop.types import Message, Observation, Task


@dataclass
class RefereedEnvironment(Environment):
    """The game, until a reply is no move: `World.answer` then finds nothing in it."""

    inner: Environment
    world: World

    async def reset(self, task: Task) -> None:
        await self.inner.reset(task)

    async def step(self, reply: Message) -> Observation:
        if not self.world.answer(reply.content):
            return Observation(done=True, reward=0.0)
        return await self.inner.step(reply)

    async def close(self) -> None:
        await self.inner.close()

    def demonstrate(self) -> Message:
        return demonstrating(self.inner).demonstrate()


@dataclass(frozen=True)
class Refereed(Around):
    """A world as a game: who breaks its rules is out, and earns nothing."""

    def environment(self) -> RefereedEnvironment:
        return RefereedEnvironment(self.inner.environment(), self.inner)
