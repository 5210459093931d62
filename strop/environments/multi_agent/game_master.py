"""Playpen's game master (2504.08590): a completion that is no move ends a game, and that is not the same as to lose it.

Papers: playpen
"""

from __future__ import annotations

from dataclasses import dataclass

from strop.environments.format.demonstrations import demonstrating
from strop.environments.wrappers.around import Around
from strop.roles import Environment, Episode
from strop.types import Message, Observation, Task


@dataclass
class RefereedEpisode(Episode):
    """The game, until a completion is no move: `Environment.answer` then finds nothing in it."""

    inner: Episode
    env: Environment

    async def reset(self, task: Task) -> None:
        await self.inner.reset(task)

    async def step(self, completion: Message) -> Observation:
        if not self.env.answer(completion.content):
            return Observation(done=True, reward=0.0)
        return await self.inner.step(completion)

    async def close(self) -> None:
        await self.inner.close()

    def demonstrate(self) -> Message:
        return demonstrating(self.inner).demonstrate()


@dataclass(frozen=True)
class Refereed(Around):
    """An environment as a game: who breaks its rules is out, and earns nothing."""

    def episode(self) -> RefereedEpisode:
        return RefereedEpisode(self.inner.episode(), self.inner)
