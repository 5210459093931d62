"""Negative control of demonstrations: the right completion of another task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.data.lookup import other_task
from strop.environments.format.demonstrations import demonstrating
from strop.roles import Agent, Dialogue, Environment, Episode
from strop.types import Origin, Task


@dataclass(frozen=True)
class DemonstrateAnother(Agent):
    """The environment's first completion of another train task, fixed per task; it earns no reward."""

    envs: tuple[Environment, ...]

    origin: ClassVar[Origin] = Origin.TEACHER

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        shown = demonstrating(episode)
        await episode.reset(other_task(self.envs, task))
        dialogue.say(shown.demonstrate())
        return ()
