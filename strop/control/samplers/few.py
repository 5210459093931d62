"""A handful of tasks, over and over: the second phase of concise reasoning (2504.05185), or a set one can count.

Papers: concise-reasoning
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from strop.errors import ConfigurationError
from strop.roles import Belief, Sampler, World
from strop.types import Task


@dataclass
class Few(Sampler):
    """The first `count` tasks of each world in turn, from the start again when all were drawn."""

    worlds: tuple[World, ...]
    count: int = 8  # tasks of each world

    _num_drawn: int = field(default=0, init=False, repr=False, compare=False)

    repeats: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.worlds or self.count < 1:
            raise ConfigurationError(f"Few needs worlds and count >= 1, got {len(self.worlds)} and {self.count}")

    def next(self, step: int, belief: Belief) -> Task:
        index, turn = divmod(self._num_drawn, len(self.worlds))
        self._num_drawn += 1
        return self.worlds[turn].task(index % self.count)

    def state(self) -> dict[str, Any]:
        return {"num_drawn": self._num_drawn}

    def restore(self, state: dict[str, Any]) -> None:
        self._num_drawn = int(state["num_drawn"])
