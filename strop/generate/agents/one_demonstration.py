"""StepAgent's expert (2411.03817): what the world would do where the attempt stands, and nothing more.

Papers: stepagent
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.demonstrations import demonstrating
from strop.generate.agents.support.episode_replay import where_it_stands
from strop.generate.interfaces import Dialogue
from strop.roles import Agent, Environment
from strop.types import Origin, Task


@dataclass(frozen=True)
class OneDemonstration(Agent):
    """Says one demonstration behind the turns that are there, and is paid `worth` for it."""

    worth: float = 2.0  # of the expert's action, as `OneAction` pays it

    origin: ClassVar[Origin] = Origin.TEACHER

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        expert = demonstrating(environment)
        before = await where_it_stands(task, dialogue, environment, must_go_on=True)
        if dialogue.is_cut:
            return (0.0,) * len(before)
        shown = expert.demonstrate()
        dialogue.say(shown)
        await environment.step(shown)
        return (*(0.0 for _ in before), self.worth)
