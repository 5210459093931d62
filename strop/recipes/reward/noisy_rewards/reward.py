"""Label noise on rewards (2505.22653): for a share of the tasks, right and wrong answers swap their rewards.

A task's hash decides whether it is flipped, so it is the same for all its rollouts over the run. A completion without
an answer is not flipped, or saying nothing would earn most.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.data.lookup import env_of
from strop.errors import ConfigurationError
from strop.filter.reward_values import RewardScores, shaped
from strop.roles import Environment, Reward
from strop.success import success
from strop.types import Group, Metrics, Rollout, Task
from strop.workers.foreign_checks import answered


@dataclass(frozen=True)
class Flipped(Reward):
    """Reward 1 - s in place of s, the success by `inner`, for all answers to a share of the tasks (1/2: pure noise)."""

    inner: Reward  # says how right a rollout is
    envs: tuple[Environment, ...]
    share: float = 0.4  # of the tasks
    seed: int = 0  # of which ones
    weight: float = 1.0

    name: ClassVar[str] = "flipped"
    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ConfigurationError(f"Flipped needs a share of tasks from 0 to 1, got {self.share}")

    @property
    def is_inline(self) -> bool:
        return all(env.is_inline for env in self.envs)

    def __call__(self, group: Group) -> RewardScores:
        return shaped(self, group, lambda _: self._flipped(group), self.inner)

    def _flipped(self, group: Group) -> list[float]:
        right = [success(rollout) for rollout in group.rollouts]
        if not self.is_flipped(group.task):
            return right
        env = env_of(self.envs, group.task)
        answers = [_answers(env, rollout) for rollout in group.rollouts]
        for rollout, is_answer in zip(group.rollouts, answers, strict=True):
            rollout.facts["flipped"] = float(is_answer)
        return [1 - each if is_answer else each for each, is_answer in zip(right, answers, strict=True)]

    def is_flipped(self, task: Task) -> bool:
        digest = hashlib.sha256(f"{self.seed}/{task.id}".encode()).digest()
        return int.from_bytes(digest[:7], "big") / 2**56 < self.share

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Says how many groups of the batch were flipped; nothing is remembered."""
        flipped = sum(self.is_flipped(group.task) for group in groups)
        return {"flipped_share": flipped / max(len(groups), 1)}


def _answers(env: Environment, rollout: Rollout) -> bool:
    return bool(answered(env, rollout.completion))
