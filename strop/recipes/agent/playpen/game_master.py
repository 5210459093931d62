"""Game referee (Playpen, 2504.08590): an invalid move aborts the game with reward 0; that is not the same as losing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from strop.environments.format.demonstrations import demonstrating
from strop.environments.wrappers.around import Around
from strop.roles import Environment, Episode
from strop.types import Message, Observation, Task


@runtime_checkable
class Moves(Protocol):
    """Environment that says which completions are moves of its game."""

    def is_move(self, completion: str) -> bool: ...


def is_move(env: Environment, completion: Message) -> bool:
    """Whether a completion is a move; where the environment does not say, it calls a tool or gives an answer."""
    if isinstance(env, Moves):
        return env.is_move(completion.content)
    return bool(completion.tool_calls) or bool(env.answer(completion.content))


@dataclass
class RefereedEpisode(Episode):
    """Episode that ends at the first invalid move: no call of a tool, and no answer."""

    inner: Episode
    env: Environment

    async def reset(self, task: Task) -> None:
        await self.inner.reset(task)

    async def step(self, completion: Message) -> Observation:
        if not is_move(self.env, completion):
            return Observation(done=True, reward=0.0)
        return await self.inner.step(completion)

    async def close(self) -> None:
        await self.inner.close()

    def demonstrate(self) -> Message:
        return demonstrating(self.inner).demonstrate()


@dataclass(frozen=True)
class Refereed(Around):
    """Refereed version of an environment: an invalid move ends the episode with reward 0."""

    def episode(self) -> RefereedEpisode:
        return RefereedEpisode(self.inner.episode(), self.inner)
