"""Single-turn tasks derived from another environment's tasks: true/false questions, rankings, first errors."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.single_turn import SingleTurn
from strop.roles import Environment
from strop.types import Task


@dataclass(frozen=True)
class Derived(Environment):
    """Derived environment with as many tasks as `env` and its level; subclasses define the question."""

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
