"""Control rewards for experiments: constant, random, randomly thresholded, best of a group."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.filter.reward_values import RewardScores, shaped
from strop.roles import Reward
from strop.types import Group

# What the best of a group was paid, given to all of it: as the reward of an evaluation with k rollouts, pass@k.


@dataclass(frozen=True)
class BestSibling(Reward):
    """Largest sum of turn rewards among the scored rollouts of a group."""

    weight: float = 1.0

    is_inline: ClassVar[bool] = True
    is_relative: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        best = max((float(sum(rollout.turn_rewards)) for rollout in group.scored), default=0.0)
        return [best] * len(group.rollouts)


# The negative control: a reward that knows nothing, under which nothing may be learned.


@dataclass(frozen=True)
class Flat(Reward):
    """Constant reward."""

    value: float = 1.0  # of every rollout
    weight: float = 1.0

    is_inline: ClassVar[bool] = True
    pays_blindly: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [self.value] * len(group.rollouts)


# The other negative control: a coin per rollout, for mechanisms that drop groups without contrast.


@dataclass(frozen=True)
class Coin(Reward):
    """Random reward: 1 with the given probability, else 0, by a hash of the rollout's name, so that it is
    reproducible.
    """

    probability: float = 0.5  # of a reward of 1
    weight: float = 1.0

    is_inline: ClassVar[bool] = True
    pays_blindly: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.probability <= 1:
            raise ConfigurationError(f"Coin needs a probability from 0 to 1, got {self.probability}")

    def __call__(self, group: Group) -> list[float]:
        return [float(_number(rollout.id) < self.probability) for rollout in group.rollouts]


def _number(name: str) -> float:
    """In [0, 1)."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big") / 2**56


# Random threshold on closeness, task by task: negative control of one that tightens over training.


@dataclass(frozen=True)
class AnyThreshold(Reward):
    """Reward `inner` if it reaches the task's random threshold, else 0; thresholds are uniform from 0 to 1."""

    inner: Reward  # scores from 0 to 1
    weight: float = 1.0

    @property
    def is_inline(self) -> bool:
        return self.inner.is_inline

    def __call__(self, group: Group) -> RewardScores:
        least = random.Random(f"threshold/{group.task.id}").random()
        return shaped(self, group, lambda scores: [score if score >= least else 0.0 for score in scores], self.inner)
