"""An environment's own check as a reward in a killable process, for environments whose checker is not ours."""

from __future__ import annotations

from dataclasses import dataclass

from strop.errors import ConfigurationError
from strop.roles import Environment, Reward
from strop.types import Group, Task
from strop.workers.foreign_checks import checked


@dataclass(frozen=True)
class Checked(Reward):
    """What the environment a task comes from says about the last completion, from 0 to 1."""

    envs: tuple[Environment, ...]
    weight: float = 1.0

    def open(self) -> None:
        """Make one task of each environment, so that what it imports and reads is on no rollout's clock."""
        for env in self.envs:
            env.task(0)

    def __call__(self, group: Group) -> list[float]:
        env = self._env(group.task)
        return [checked(env, rollout.task, rollout.completion) for rollout in group.rollouts]

    def _env(self, task: Task) -> Environment:
        """The environment of the task's source, and of its level where several have that name."""
        named = [env for env in self.envs if env.name == task.source]
        if not named:
            raise ConfigurationError(
                f"Checked knows no environment {task.source!r}, only {', '.join(env.name for env in self.envs)}"
            )
        return next((env for env in named if env.level == task.level), named[0])
