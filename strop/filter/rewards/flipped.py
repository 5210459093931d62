"""Label noise on rewards (2505.22653): for a share of the tasks, right and wrong answers swap their rewards.

A task's hash decides whether it is flipped, so it is the same for all its rollouts over the run. A completion without
an answer is not flipped, or saying nothing would earn most.

Papers: noisy-rewards
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.data.lookup import env_of
from strop.errors import ConfigurationError
from strop.filter.reward_values import plain_scores
from strop.roles import Environment, Reward
from strop.types import Group, Metrics, Rollout, Task
from strop.workers.foreign_checks import answered


@dataclass(frozen=True)
class Flipped(Reward):
    """Reward 1 - r in place of r = `inner`, for all answers to a share of the tasks; a share of one half is pure
    noise.
    """

    inner: Reward  # scores from 0 to 1
    envs: tuple[Environment, ...]
    share: float = 0.4  # of the tasks
    seed: int = 0  # of which ones
    weight: float = 1.0

    name: ClassVar[str] = "flipped"

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ConfigurationError(f"Flipped needs a share of tasks from 0 to 1, got {self.share}")

    @property
    def is_inline(self) -> bool:
        return all(env.is_inline for env in self.envs)

    def __call__(self, group: Group) -> list[float]:
        scores = plain_scores(self, self.inner, group)
        if not self.is_flipped(group.task):
            return scores
        env = env_of(self.envs, group.task)
        pairs = zip(group.rollouts, scores, strict=True)
        return [1 - score if _answers(env, rollout) else score for rollout, score in pairs]

    def is_flipped(self, task: Task) -> bool:
        digest = hashlib.sha256(f"{self.seed}/{task.id}".encode()).digest()
        return int.from_bytes(digest[:7], "big") / 2**56 < self.share

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Says how many groups of the batch were flipped; nothing is remembered."""
        flipped = sum(self.is_flipped(group.task) for group in groups)
        return {"flipped_share": flipped / max(len(groups), 1)}


def _answers(env: Environment, rollout: Rollout) -> bool:
    return bool(answered(env, rollout.completion))
