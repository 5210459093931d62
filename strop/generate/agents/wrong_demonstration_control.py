"""Show a right reply to another task: what demonstrations are worth without their task, for negative controls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.data.lookup import other_task
from strop.environments.format.demonstrations import demonstrating
from strop.generate.interfaces import Dialogue
from strop.roles import Agent, Environment, World
from strop.types import Origin, Task


@dataclass(frozen=True)
class DemonstrateAnother(Agent):
    """The world's first reply to another of its train tasks, the same one for a task every time; nobody pays it."""

    worlds: tuple[World, ...]

    origin: ClassVar[Origin] = Origin.TEACHER

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        shown = demonstrating(environment)
        await environment.reset(other_task(self.worlds, task))
        dialogue.say(shown.demonstrate())
        return ()
