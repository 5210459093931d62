"""Talk with the world turn by turn, tools included, until one of them ends it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.generate.agents.support.episode_loop import acted, payments
from strop.generate.agents.support.episode_replay import where_it_stands
from strop.generate.interfaces import Dialogue
from strop.roles import Agent, Environment
from strop.types import Origin, Task


@dataclass(frozen=True)
class Chat(Agent):
    """The policy replies and the world answers, at most `max_turns` times."""

    max_turns: int = 8  # of one attempt

    origin: ClassVar[Origin] = Origin.POLICY

    def __post_init__(self) -> None:
        if self.max_turns < 1:
            raise ConfigurationError(f"Chat needs max_turns >= 1, got {self.max_turns}")

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        before = await where_it_stands(task, dialogue, environment)
        return payments(await acted(dialogue, environment, self.max_turns, before))
