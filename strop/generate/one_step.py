"""One turn behind those that are given (StepAgent, 2411.03817): the policy's own, or one that is said in its place.

Papers: stepagent
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.generate.agents.support.episode_replay import where_it_stands
from strop.generate.interfaces import Dialogue
from strop.roles import Agent, Environment
from strop.types import Message, Origin, Task


@dataclass(frozen=True)
class OneStep(Agent):
    """The world is brought to where the given turns lead, and one more is taken; what comes of it is not asked.

    Where the given turns fill the context, there is no room for one more.
    """

    said: str | None = None  # in place of the policy's reply

    origin: ClassVar[Origin] = Origin.BRANCHED

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        await where_it_stands(task, dialogue, environment)
        if dialogue.is_cut:
            return ()
        if self.said is None:
            await dialogue.reply()
        else:
            dialogue.say(Message("assistant", self.said))
        return ()
