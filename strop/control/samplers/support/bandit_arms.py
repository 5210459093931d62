"""Environments as bandit arms: a sampler chooses the environment, its tasks come in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from strop.environments.data.lookup import env_of
from strop.errors import ConfigurationError
from strop.roles import Environment
from strop.stats.task_lineage import is_written
from strop.types import Task


@dataclass
class BanditArms:
    """Next task of each environment, in the environment's order."""

    envs: tuple[Environment, ...]
    _taken: list[int] = field(default_factory=list, init=False, repr=False, compare=False)  # tasks of each environment

    def __post_init__(self) -> None:
        kinds = [(env.name, env.level) for env in self.envs]
        if not kinds or len(set(kinds)) < len(kinds):
            raise ConfigurationError(f"Arms need environments that differ in name or level, got {kinds}")
        self._taken = [0] * len(self.envs)

    def take(self, arm: int) -> Task:
        self._taken[arm] += 1
        return self.envs[arm].task(self._taken[arm] - 1)

    def arm(self, task: Task) -> int | None:
        """Which environment a task is from, as everywhere (`env_of`); None: none of these, or a task generator's."""
        if is_written(task) or all(env.name != task.source for env in self.envs):
            return None
        home = env_of(self.envs, task)
        return next(arm for arm, env in enumerate(self.envs) if env is home)

    def state(self) -> dict[str, Any]:
        return {"taken": list(self._taken)}

    def restore(self, state: dict[str, Any]) -> None:
        self._taken = [int(count) for count in state["taken"]]
