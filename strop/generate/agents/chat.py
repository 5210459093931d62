"""Multi-turn chat agent: policy and environment alternate, tool calls included, until the episode ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.generate.agents.support.episode_loop import acted, payments, where_it_stands
from strop.roles import Agent, Dialogue, Episode
from strop.types import Origin, Task


@dataclass(frozen=True)
class Chat(Agent):
    """Multi-turn agent: the policy writes a completion, the environment responds, for at most `max_turns` turns."""

    max_turns: int = 8  # per rollout

    origin: ClassVar[Origin] = Origin.POLICY

    def __post_init__(self) -> None:
        if self.max_turns < 1:
            raise ConfigurationError(f"Chat needs max_turns >= 1, got {self.max_turns}")

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        before = await where_it_stands(task, dialogue, episode)
        return payments(await acted(dialogue, episode, self.max_turns, before))
