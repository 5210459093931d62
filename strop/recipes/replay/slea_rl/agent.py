"""SLEA-RL's agent (2603.18079): beside every observation stand experiences of steps from observations like it.

Observations whose texts overlap by `near` are one cluster; its experiences of highest score are shown, and where a
cluster has none, those of the whole library. Reading: the release compares texts by their longest common blocks; here
by the short pieces that they share.
Papers: slea-rl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError
from strop.generate.interfaces import Dialogue
from strop.generate.memory.inject import fitting
from strop.generate.memory.store import Lesson, Library
from strop.recipes.replay.slea_rl.experiences import GOLDEN, WARNINGS
from strop.recipes.replay.slea_rl.observed import MARK, observed
from strop.roles import Agent, Episode
from strop.types import Message, Observation, Origin, Task


@dataclass
class Reminded(Agent):
    """Lets `inner` talk, in an environment whose every word is followed by `golden` strategies and `warnings`."""

    inner: Agent
    strategies: Library
    pitfalls: Library
    golden: int = 2  # strategies beside an observation
    warnings: int = 1  # beside an observation
    near: float = 0.85  # overlap of observations that are one cluster
    longest: int = 800  # characters of all that stands beside an observation

    origin: ClassVar[Origin] = Origin.POLICY

    def __post_init__(self) -> None:
        if self.golden < 0 or self.warnings < 0 or not 0 < self.near <= 1:
            raise ConfigurationError(
                f"Reminded needs golden and warnings >= 0 and 0 < near <= 1, got {self.golden}, {self.warnings} and "
                f"{self.near}"
            )

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        *before, last = task.messages
        if not dialogue.turns and (told := self._beside(prompt_of(task))):
            dialogue.restart([*before, replace(last, content=last.content + told)])
        return await self.inner.rollout(task, dialogue, _Commented(episode, self))

    def commented(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """What the environment said, the last of it with experiences behind it."""
        if not messages:
            return ()
        *before, last = messages
        return (*before, replace(last, content=last.content + self._beside(observed(messages))))

    def _beside(self, observation: str) -> str:
        found = [
            *_shown(self.strategies, GOLDEN, observation, self.golden, self.near),
            *_shown(self.pitfalls, WARNINGS, observation, self.warnings, self.near),
        ]
        texts = fitting([lesson.text for lesson in found], self.longest)
        return MARK + " ".join(texts) if texts else ""


@dataclass
class _Commented:
    """An episode whose answers have experiences behind them."""

    inner: Episode
    agent: Reminded = field(repr=False)

    async def reset(self, task: Task) -> None:
        await self.inner.reset(task)

    async def step(self, completion: Message) -> Observation:
        answer = await self.inner.step(completion)
        return answer if answer.done else replace(answer, messages=self.agent.commented(answer.messages))

    async def close(self) -> None:
        await self.inner.close()


def _shown(library: Library, shelves: Sequence[str], observation: str, count: int, near: float) -> list[Lesson]:
    """The best of the observation's cluster; of all, where it has none."""
    found = [each for shelf in shelves for each in library.about(observation, shelf, len(library))]
    cluster = [lesson for overlap, lesson in found if overlap >= near]
    known = cluster or [lesson for shelf in shelves for lesson in library.best(shelf, count)]
    return sorted(known, key=lambda lesson: -lesson.score)[:count]
