"""A world's own check of the last reply, whatever was paid on the way."""

from __future__ import annotations

from dataclasses import dataclass

from strop.environments.data.lookup import world_of
from strop.roles import Reward, World
from strop.types import Group
from strop.workers.foreign_checks import checked


@dataclass(frozen=True)
class LastReply(Reward):
    """How right the last reply is, from 0 to 1; asked inline where all worlds are ours, else in a killable process."""

    worlds: tuple[World, ...]
    weight: float = 1.0

    @property
    def is_inline(self) -> bool:
        return all(world.is_inline for world in self.worlds)

    def __call__(self, group: Group) -> list[float]:
        world = world_of(self.worlds, group.task)
        return [checked(world, attempt.task, attempt.reply) for attempt in group.trajectories]
