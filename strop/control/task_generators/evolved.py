"""eva's creator (2411.00062): tasks at which the policy's attempts differ most in reward are evolved into new ones.

Regret is read as the best minus the worst reward of a task's last group: a range, which grows with the number of
attempts, so that number should not change. Tasks are drawn in proportion to it, new ones among them; an evolution
goes deeper (one more step) or wider (another problem of the kind).
Papers: eva
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from strop.control.task_generators.support.prompts import rewritten
from strop.errors import ConfigurationError
from strop.roles import Adviser, Writer
from strop.stats.task_lineage import plain, unplain
from strop.types import Group, Metrics, Task

if TYPE_CHECKING:
    from strop.generate.interfaces import Player

_KNOWN = 256  # tasks that are remembered, those tried last


@dataclass
class Evolved(Writer):
    """One evolution after every group, of a task drawn in proportion to its regret."""

    adviser: Adviser | None = None  # who evolves; None: the policy itself
    deeper: float = 0.5  # share of evolutions that ask for one more step

    _pool: dict[str, tuple[Task, float]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.deeper <= 1:
            raise ConfigurationError(f"Evolved needs 0 <= deeper <= 1, got {self.deeper}")

    async def __call__(self, group: Group, play: Player) -> list[Task]:
        pool = [*(self._pool | {group.task.id: (group.task, regret(group))}).values()]
        weights = np.array([weight for _, weight in pool])
        if not weights.sum() > 0:
            return []
        stream = np.random.default_rng(play.another().key)
        task = pool[int(stream.choice(len(pool), p=weights / weights.sum()))][0]
        wanted = "harder" if stream.random() < self.deeper else "similar"
        return [await rewritten(self.adviser, wanted, task, play)]

    def observe(self, group: Group) -> None:
        self._pool.pop(group.task.id, None)
        if (weight := regret(group)) > 0:
            self._pool[group.task.id] = (group.task, weight)
        while len(self._pool) > _KNOWN:
            del self._pool[next(iter(self._pool))]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how much there is to gain."""
        return {"regret": sum(weight for _, weight in self._pool.values()) / max(len(self._pool), 1)}

    def state(self) -> dict[str, Any]:
        return {"pool": [[plain(task), weight] for task, weight in self._pool.values()]}

    def restore(self, state: dict[str, Any]) -> None:
        self._pool = {data["id"]: (unplain(data), float(weight)) for data, weight in state["pool"]}


def regret(group: Group) -> float:
    """The best minus the worst reward of the policy's own attempts."""
    rewards = [attempt.reward for attempt in group.own]
    return max(rewards) - min(rewards) if rewards else 0.0
