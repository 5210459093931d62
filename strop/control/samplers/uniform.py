"""Uniform sampler: every environment equally often, every task once; the control of all curricula."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from strop.errors import ConfigurationError
from strop.roles import Environment, PassRateEstimator, Sampler
from strop.types import Task


@dataclass
class Uniform(Sampler):
    """Round-robin over W endless environments: draw n is task n // W of environment n % W; observations change
    nothing.
    """

    envs: tuple[Environment, ...]
    _num_drawn: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.envs:
            raise ConfigurationError("Uniform needs at least 1 environment, got 0")

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        index, turn = divmod(self._num_drawn, len(self.envs))
        self._num_drawn += 1
        return self.envs[turn].task(index)

    def state(self) -> dict[str, Any]:
        return {"num_drawn": self._num_drawn}

    def restore(self, state: dict[str, Any]) -> None:
        self._num_drawn = int(state["num_drawn"])
