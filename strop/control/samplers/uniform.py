"""Every world equally often, every task once: the control of all curricula."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from strop.errors import ConfigurationError
from strop.roles import Belief, Sampler, World
from strop.types import Task


@dataclass
class Uniform(Sampler):
    """Endless tasks, round-robin over W worlds: draw n is task n // W of world n % W; nothing observed changes that."""

    worlds: tuple[World, ...]
    _num_drawn: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.worlds:
            raise ConfigurationError("Uniform needs at least 1 world, got 0")

    def next(self, step: int, belief: Belief) -> Task:
        index, turn = divmod(self._num_drawn, len(self.worlds))
        self._num_drawn += 1
        return self.worlds[turn].task(index)

    def state(self) -> dict[str, Any]:
        return {"num_drawn": self._num_drawn}

    def restore(self, state: dict[str, Any]) -> None:
        self._num_drawn = int(state["num_drawn"])
