"""A price for every reply that cannot be read as an action (RAGEN, 2504.20073).

Papers: ragen
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.actions import action_in
from strop.errors import ConfigurationError
from strop.roles import Reward
from strop.types import Group


@dataclass(frozen=True)
class Unreadable(Reward):
    """Minus `price` for each reply that is neither one well-formed call nor an answer."""

    price: float = 0.1  # of one reply

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.price < 0:
            raise ConfigurationError(f"Unreadable needs a price of 0 or more, got {self.price}")

    def __call__(self, group: Group) -> list[float]:
        counts = (
            sum(not action_in(turn.message).is_formed for turn in attempt.turns) for attempt in group.trajectories
        )
        return [-self.price * count for count in counts]
