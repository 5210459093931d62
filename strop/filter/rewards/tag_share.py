"""A reward for the layout of a reply, tag by tag (V-Triune, 2505.18129): a quarter for each of four.

Papers: v-triune
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.think_tags import CLOSE, OPEN
from strop.errors import ConfigurationError
from strop.roles import Reward
from strop.types import Group


@dataclass(frozen=True)
class TagShare(Reward):
    """The share of the tags that stand in the last reply exactly once."""

    tags: tuple[str, ...] = (OPEN, CLOSE)
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.tags or not all(self.tags):
            raise ConfigurationError(f"TagShare needs tags, got {self.tags}")

    def __call__(self, group: Group) -> list[float]:
        replies = [attempt.reply for attempt in group.trajectories]
        return [sum(reply.count(tag) == 1 for tag in self.tags) / len(self.tags) for reply in replies]
