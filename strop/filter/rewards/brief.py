"""A limit on what is written, as a reward of its own: half of an objective that wants right and short answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.roles import Reward
from strop.types import Group


@dataclass(frozen=True)
class Brief(Reward):
    """1 where the attempt wrote at most `limit` tokens, over all its turns, else 0."""

    limit: int  # tokens that still count as brief
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ConfigurationError(f"Brief needs a limit >= 1 token, got {self.limit}")

    def __call__(self, group: Group) -> list[float]:
        return [float(attempt.num_tokens <= self.limit) for attempt in group.trajectories]
