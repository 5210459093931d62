"""A bundled world's own check of the last reply, whatever was paid on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.roles import Reward, World
from strop.types import Group


@dataclass(frozen=True)
class LastReply(Reward):
    """How right the last reply is, from 0 to 1; for worlds whose check is ours and quick (others: `Checked`)."""

    worlds: tuple[World, ...]
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        named = [world for world in self.worlds if world.name == group.task.source]
        if not named:
            known = ", ".join(world.name for world in self.worlds)
            raise ConfigurationError(f"LastReply knows no world {group.task.source!r}, only {known}")
        return [named[0].check(attempt.task, attempt.reply) for attempt in group.trajectories]
