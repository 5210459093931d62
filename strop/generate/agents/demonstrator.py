"""Let the world itself write every reply, for supervised training on worlds that know a right one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.demonstrations import demonstrating
from strop.errors import ConfigurationError
from strop.generate.interfaces import Dialogue
from strop.roles import Agent, Environment
from strop.types import Origin, Task


@dataclass(frozen=True)
class Demonstrate(Agent):
    """The world's demonstration is said and the world answers it, at most `max_turns` times."""

    max_turns: int = 32  # of one attempt
    least: float = 0.0  # that a world which pays must pay for it; a demonstration that it rejects ends the run

    origin: ClassVar[Origin] = Origin.TEACHER

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        shown = demonstrating(environment)
        await environment.reset(task)
        paid: list[float | None] = []
        while len(paid) < self.max_turns and not dialogue.is_cut:
            message = shown.demonstrate()
            dialogue.say(message)
            answer = await environment.step(message)
            paid.append(answer.reward)
            if answer.done:
                break
            dialogue.hear(answer.messages)
        told = tuple(reward or 0.0 for reward in paid) if any(reward is not None for reward in paid) else ()
        if told and sum(told) < self.least:
            raise ConfigurationError(
                f"task {task.id} of {task.source}:{task.level}: its world pays its own demonstration {sum(told):g}, "
                f"need at least {self.least:g}; mend it, or raise context if it was cut off"
            )
        return told
