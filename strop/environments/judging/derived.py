"""Tasks of one reply that are made from those of another world: a verdict, a ranking, the place of a mistake."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.single_turn import SingleTurn
from strop.roles import World
from strop.types import Task


@dataclass(frozen=True)
class Derived(World):
    """As many tasks as `world` has, on its level; a subclass says what they ask."""

    world: World

    is_inline: ClassVar[bool] = True  # nothing is asked of the world but its tasks and their solutions

    @property
    def level(self) -> int:
        return self.world.level

    def num_tasks(self, heldout: bool = False) -> int | None:
        return self.world.num_tasks(heldout)

    def environment(self) -> SingleTurn:
        return SingleTurn(self)

    @abstractmethod
    def solution(self, task: Task) -> str:
        """A right reply."""
