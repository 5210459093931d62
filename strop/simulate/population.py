"""Tasks of a scenario, with their true success rates."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.control.seeded_choice import Doubles
from strop.errors import ConfigurationError
from strop.roles import Environment, Episode
from strop.simulate.scenarios import Scenario
from strop.types import IntArray, Message, Task

_HELD_OUT = 33  # tasks of each kind by which it is measured: quantiles of the spread, so that chance has no part


@dataclass(frozen=True)
class SimulatedEnvironment(Environment):
    """Tasks of one level; their rollouts are Bernoulli samples (`training_loop.py`), so there are no episodes."""

    level: int
    members: tuple[Task, ...]
    name: ClassVar[str] = "simulated"
    is_inline: ClassVar[bool] = True

    def task(self, index: int, heldout: bool = False) -> Task:
        if heldout:
            raise ConfigurationError("a simulated environment has no held-out tasks: its accuracy is computed")
        return self.members[index % len(self.members)]

    def num_tasks(self, heldout: bool = False) -> int:
        return 0 if heldout else len(self.members)

    def episode(self) -> Episode:
        raise ConfigurationError("a simulated task is tried by coin: nobody can play it")

    def check(self, task: Task, completion: str) -> float:
        raise ConfigurationError("a simulated task is decided by a random draw: it takes no completion")


@dataclass(frozen=True, eq=False)
class Population:
    """N tasks of K kinds; arrays are in the order of `tasks`."""

    scenario: Scenario
    tasks: tuple[Task, ...]
    kinds: IntArray  # [N]
    offsets: Doubles  # [N], of logits
    is_impossible: NDArray[np.bool_]  # [N]
    is_broken: NDArray[np.bool_]  # [N]
    envs: tuple[SimulatedEnvironment, ...]
    places: dict[str, int]  # by id

    @property
    def tokens(self) -> IntArray:
        """Of one rollout of each task: [N]."""
        return np.array([kind.tokens for kind in self.scenario.kinds])[self.kinds]

    @property
    def heldout(self) -> Doubles:
        """Offsets of the tasks that each kind is measured by: [K, H]."""
        places = [NormalDist().inv_cdf((place + 0.5) / _HELD_OUT) for place in range(_HELD_OUT)]
        return np.outer([kind.spread for kind in self.scenario.kinds], places)


def populate(scenario: Scenario, seed: int) -> Population:
    """The tasks of one seed: their offsets, which of them are impossible or broken, and what their levels say."""
    rng = np.random.default_rng([seed, 1])
    kinds = np.repeat(np.arange(len(scenario.kinds)), [kind.tasks for kind in scenario.kinds])
    offsets = np.concatenate([rng.normal(0.0, kind.spread, kind.tasks) for kind in scenario.kinds])
    fates = np.concatenate([_fates(kind.tasks, kind.impossible, kind.broken, rng) for kind in scenario.kinds])
    levels = rng.permutation(kinds) if scenario.lies else kinds
    tasks = tuple(
        Task((Message("user", f"simulated task {place}"),), str(place), SimulatedEnvironment.name, int(level))
        for place, level in enumerate(levels)
    )
    envs = tuple(
        SimulatedEnvironment(level, tuple(task for task in tasks if task.level == level))
        for level in range(len(scenario.kinds))
    )
    places = {task.id: place for place, task in enumerate(tasks)}
    return Population(scenario, tasks, kinds, offsets, fates == 1, fates == 2, envs, places)


def _fates(count: int, impossible: float, broken: float, rng: np.random.Generator) -> IntArray:
    """0 an ordinary task, 1 an impossible one, 2 a broken one: exactly as many as the shares say, in any order."""
    fates = np.zeros(count, dtype=np.int64)
    first, second = round(count * impossible), round(count * (impossible + broken))
    fates[:first], fates[first:second] = 1, 2
    return rng.permutation(fates)
