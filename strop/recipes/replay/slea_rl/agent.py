"""SLEA-RL's agent (2603.18079): every observation is followed by experiences of similar observations.

Observations whose texts overlap by `near` form one cluster. Its experiences of highest score are shown, or those of the
whole library if the cluster has none. Reading: the release compares texts by longest common blocks; here by overlap of
short pieces of text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError
from strop.generate.memory.inject import fitting
from strop.generate.memory.store import Lesson, Library
from strop.recipes.replay.slea_rl.experiences import GOLDEN, WARNINGS
from strop.recipes.replay.slea_rl.observed import SEPARATOR, observed
from strop.roles import Agent, Dialogue, Episode
from strop.types import Message, Observation, Origin, Task


@dataclass
class ExperienceAgent(Agent):
    """The agent `inner`, with `golden` strategies and `warnings` warnings appended to every observation."""

    inner: Agent
    strategies: Library
    pitfalls: Library
    golden: int = 2  # strategies per observation
    warnings: int = 1  # warnings per observation
    near: float = 0.85  # overlap from which observations form one cluster
    longest: int = 800  # characters of experiences per observation

    origin: ClassVar[Origin] = Origin.POLICY

    def __post_init__(self) -> None:
        if self.golden < 0 or self.warnings < 0 or not 0 < self.near <= 1:
            raise ConfigurationError(
                f"ExperienceAgent needs golden and warnings >= 0 and 0 < near <= 1, got {self.golden}, {self.warnings} "
                f"and {self.near}"
            )

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        *before, last = task.messages
        if not dialogue.turns and (shown := self._experiences(prompt_of(task))):
            dialogue.restart([*before, replace(last, content=last.content + shown)])
        return await self.inner.rollout(task, dialogue, _Augmented(episode, self))

    def augmented(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """The environment's messages, with experiences appended to the last one."""
        if not messages:
            return ()
        *before, last = messages
        return (*before, replace(last, content=last.content + self._experiences(observed(messages))))

    def _experiences(self, observation: str) -> str:
        found = [
            *_shown(self.strategies, GOLDEN, observation, self.golden, self.near),
            *_shown(self.pitfalls, WARNINGS, observation, self.warnings, self.near),
        ]
        texts = fitting([lesson.text for lesson in found], self.longest)
        return SEPARATOR + " ".join(texts) if texts else ""


@dataclass
class _Augmented:
    """An episode with experiences appended to its observations."""

    inner: Episode
    agent: ExperienceAgent = field(repr=False)

    async def reset(self, task: Task) -> None:
        await self.inner.reset(task)

    async def step(self, completion: Message) -> Observation:
        answer = await self.inner.step(completion)
        return answer if answer.done else replace(answer, messages=self.agent.augmented(answer.messages))

    async def close(self) -> None:
        await self.inner.close()


def _shown(library: Library, categories: Sequence[str], observation: str, count: int, near: float) -> list[Lesson]:
    """The best experiences of the observation's cluster, or of the whole library if the cluster has none."""
    found = [each for category in categories for each in library.about(observation, category, len(library))]
    cluster = [lesson for overlap, lesson in found if overlap >= near]
    known = cluster or [lesson for category in categories for lesson in library.best(category, count)]
    return sorted(known, key=lambda lesson: -lesson.score)[:count]
