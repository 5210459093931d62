"""Show a right completion to another task: what demonstrations are worth without their task, for negative controls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.data.lookup import other_task
from strop.environments.format.demonstrations import demonstrating
from strop.roles import Agent, Dialogue, Environment, Episode
from strop.types import Origin, Task


@dataclass(frozen=True)
class DemonstrateAnother(Agent):
    """The environment's first completion to another of its train tasks, the same one for a task every time; nobody pays
    it.
    """

    envs: tuple[Environment, ...]

    origin: ClassVar[Origin] = Origin.TEACHER

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        shown = demonstrating(episode)
        await episode.reset(other_task(self.envs, task))
        dialogue.say(shown.demonstrate())
        return ()
