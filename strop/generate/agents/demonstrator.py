"""Let the environment itself write every completion, for supervised training on environments that know a right one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.demonstrations import demonstrating
from strop.errors import ConfigurationError
from strop.roles import Agent, Dialogue, Episode
from strop.types import Origin, Task


@dataclass(frozen=True)
class Demonstrate(Agent):
    """The environment's demonstration is said and the environment answers it, at most `max_turns` times."""

    max_turns: int = 32  # of one rollout
    least: float = 0.0  # that an environment which pays must pay for it; a demonstration that it rejects ends the run

    origin: ClassVar[Origin] = Origin.TEACHER

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        shown = demonstrating(episode)
        await episode.reset(task)
        paid: list[float | None] = []
        while len(paid) < self.max_turns and not dialogue.is_cut:
            message = shown.demonstrate()
            dialogue.say(message)
            answer = await episode.step(message)
            paid.append(answer.reward)
            if answer.done:
                break
            dialogue.hear(answer.messages)
        told = tuple(reward or 0.0 for reward in paid) if any(reward is not None for reward in paid) else ()
        if told and sum(told) < self.least:
            raise ConfigurationError(
                f"task {task.id} of {task.source}:{task.level}: its environment pays its own demonstration "
                f"{sum(told):g}, "
                f"need at least {self.least:g}; mend it, or raise context if it was cut off"
            )
        return told
