"""Tasks of one completion that are made from those of another environment: a verdict, a ranking, the place of a
mistake.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.single_turn import SingleTurn
from strop.roles import Environment
from strop.types import Task


@dataclass(frozen=True)
class Derived(Environment):
    """As many tasks as `env` has, on its level; a subclass says what they ask."""

    env: Environment

    is_inline: ClassVar[bool] = True  # nothing is asked of the environment but its tasks and their solutions

    @property
    def level(self) -> int:
        return self.env.level

    def num_tasks(self, heldout: bool = False) -> int | None:
        return self.env.num_tasks(heldout)

    def episode(self) -> SingleTurn:
        return SingleTurn(self)

    @abstractmethod
    def solution(self, task: Task) -> str:
        """A right completion."""
