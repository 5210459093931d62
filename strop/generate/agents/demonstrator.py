"""Demonstration agent: the environment's reference solutions as completions, for supervised fine-tuning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.demonstrations import demonstrating
from strop.environments.needs import DEMONSTRATIONS, EnvNeed
from strop.errors import ConfigurationError
from strop.roles import Agent, Dialogue, Episode
from strop.types import Origin, Task


@dataclass(frozen=True)
class Demonstrate(Agent):
    """Agent whose every completion is the environment's demonstration, for at most `max_turns` turns."""

    max_turns: int = 32  # per rollout
    least: float = 0.0  # least reward of a demonstration in an environment that pays; a lower one ends the run

    origin: ClassVar[Origin] = Origin.TEACHER
    env_needs: ClassVar[tuple[EnvNeed, ...]] = (DEMONSTRATIONS,)

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
                f"task {task.id} of {task.source}:{task.level}: the environment's own demonstration earns only "
                f"{sum(told):g}, need at least {self.least:g}; correct it, or increase context if it was cut off"
            )
        return told
