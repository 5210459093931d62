"""A world's own check of the last reply, whatever was paid on the way."""

from __future__ import annotations

from dataclasses import dataclass

from strop.errors import ConfigurationError
from strop.processes.foreign import checked
from strop.roles import Reward, World
from strop.types import Group


@dataclass(frozen=True)
class LastReply(Reward):
    """How right the last reply is, from 0 to 1; asked inline where all worlds are ours, else in a killable process."""

    worlds: tuple[World, ...]
    weight: float = 1.0

    @property
    def is_inline(self) -> bool:
        return all(world.is_inline for world in self.worlds)

    def __call__(self, group: Group) -> list[float]:
        named = [world for world in self.worlds if world.name == group.task.source]
        if not named:
            known = ", ".join(world.name for world in self.worlds)
            raise ConfigurationError(f"LastReply knows no world {group.task.source!r}, only {known}")
        return [checked(named[0], attempt.task, attempt.reply) for attempt in group.trajectories]
