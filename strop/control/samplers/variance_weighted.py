"""CurES's choice of tasks (2510.01037): each is drawn the more often, the less its outcome is certain.

Reading: success rates are those that the run's belief expects; with `TaskCounts` that forget nothing they are the
paper's. The release divides by a temperature so high that all tasks are drawn alike within half a percent; here it is a
setting that bites.
Papers: cures
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from strop.control.samplers.support.bandit_metrics import preference
from strop.control.samplers.support.pending_choices import Hand
from strop.control.samplers.support.task_pool import Pool
from strop.control.seeded_choice import Doubles, drawn, softmax
from strop.errors import ConfigurationError
from strop.roles import Belief, Sampler, World
from strop.types import Group, Metrics, Task


@dataclass
class VarianceWeighted(Sampler):
    """P(task) is in proportion to exp(sqrt(p (1 - p)) / temperature); all of a pool are ordered anew for every version.

    The order is that of draws without replacement, so that no task is tried twice under the same weights.
    """

    worlds: tuple[World, ...]
    tasks: int = 256  # of each world, to choose from
    temperature: float = 0.1  # the lower, the more the most uncertain tasks are preferred
    seed: int = 0
    _pool: Pool = field(init=False, repr=False, compare=False)
    _hand: Hand = field(default_factory=Hand, init=False, repr=False, compare=False)
    _preference: float = field(default=0.0, init=False, repr=False, compare=False)  # at the last choice

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise ConfigurationError(f"VarianceWeighted needs temperature > 0, got {self.temperature}")
        self._pool = Pool(self.worlds, self.tasks)

    def next(self, step: int, belief: Belief) -> Task:
        return self._pool.task(self._hand.next(step, lambda number: self._ordered(step, belief, number)))

    def chances(self, step: int, belief: Belief) -> Doubles:
        """Of each task to be drawn first: [N]."""
        means = belief.foresee(self._pool.tasks(range(len(self._pool))), step)[0].astype(np.float64)
        return softmax(np.sqrt(means * (1 - means)), self.temperature)

    def _ordered(self, step: int, belief: Belief, number: int) -> list[int]:
        chances = self.chances(step, belief)
        self._preference = preference(chances)
        return drawn(chances, len(chances), (self.seed, number))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how far the last choice was from an even one."""
        return {"preference": self._preference}

    def state(self) -> dict[str, Any]:
        return {"hand": self._hand.state(), "preference": self._preference}

    def restore(self, state: dict[str, Any]) -> None:
        self._hand.restore(state["hand"])
        self._preference = float(state["preference"])
