"""An environment's own check of the last completion, whatever was paid on the way."""

from __future__ import annotations

from dataclasses import dataclass

from strop.environments.data.lookup import env_of
from strop.roles import Environment, Reward
from strop.types import Group
from strop.workers.foreign_checks import checked


@dataclass(frozen=True)
class LastCompletion(Reward):
    """How right the last completion is, from 0 to 1; asked inline where all environments are ours, else in a killable
    process.
    """

    envs: tuple[Environment, ...]
    weight: float = 1.0

    @property
    def is_inline(self) -> bool:
        return all(env.is_inline for env in self.envs)

    def __call__(self, group: Group) -> list[float]:
        env = env_of(self.envs, group.task)
        return [checked(env, rollout.task, rollout.completion) for rollout in group.rollouts]
