"""MasHost's action-wise rewards (2506.08507): what each step of building a team is worth by itself.

Papers: mashost
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.multi_agent.agent_graph import HOST, action_rewards
from strop.errors import ConfigurationError
from strop.filter.paid_text import Paid, Span
from strop.roles import Reward
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class ActionPrices(Reward):
    """-price at the end of each turn of the host that adds an agent, -1 of one that is invalid."""

    most: int = 3  # agents at a time
    price: float = 0.2  # of an agent
    weight: float = 0.1

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.price < 0:
            raise ConfigurationError(f"ActionPrices needs price >= 0, got {self.price}")

    def __call__(self, group: Group) -> list[Paid]:
        return [self._paid(attempt) for attempt in group.trajectories]

    def _paid(self, attempt: Trajectory) -> Paid:
        places = [number for number, turn in enumerate(attempt.turns) if turn.sampling.voice == HOST]
        texts = [attempt.turns[place].message.content for place in places]
        worth = action_rewards(texts, self.most, self.price)
        told = [(place, text, value) for place, text, value in zip(places, texts, worth, strict=True)]
        spans = [Span(place, 0, len(text), value) for place, text, value in told if len(attempt.turns[place].whole)]
        return Paid(0.0, tuple(spans))
