"""Repeated sampling of a small fixed set of tasks (second phase of concise RL, 2504.05185).

Papers: concise-reasoning
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from strop.control.samplers.support.task_pool import Pool
from strop.errors import ConfigurationError
from strop.roles import Environment, PassRateEstimator, Sampler
from strop.types import Task


@dataclass
class Few(Sampler):
    """First `count` tasks of each environment, round-robin and repeated."""

    envs: tuple[Environment, ...]
    count: int = 8  # tasks of each environment

    _pool: Pool = field(init=False, repr=False, compare=False)
    _num_drawn: int = field(default=0, init=False, repr=False, compare=False)

    repeats: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.envs or self.count < 1:
            raise ConfigurationError(f"Few needs environments and count >= 1, got {len(self.envs)} and {self.count}")
        self._pool = Pool(self.envs, self.count)

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        index, turn = divmod(self._num_drawn, len(self.envs))
        self._num_drawn += 1
        return self.envs[turn].task(index % self.count)

    def state(self) -> dict[str, Any]:
        return {"num_drawn": self._num_drawn}

    def restore(self, state: dict[str, Any]) -> None:
        self._num_drawn = int(state["num_drawn"])
