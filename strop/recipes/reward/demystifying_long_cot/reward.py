"""Cosine length reward (2502.03373): right answers earn more when short, wrong ones lose less when long.

Chains of thought therefore grow while the policy is wrong and shrink once it is right. Completions near the length
limit are penalized whatever the answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.filter.reward_values import RewardScores, shaped
from strop.roles import Reward
from strop.success import is_right
from strop.types import Group, Rollout


@dataclass(frozen=True)
class CosineLength(Reward):
    """Half a cosine from the first value, at length 0, to the second, at `limit` tokens.

    Of a rollout with several completions the longest counts, since the limit is per completion.
    """

    judge: Reward  # says how right a rollout is
    limit: int  # tokens that a completion may have
    right: tuple[float, float] = (2.0, 1.0)  # for a right answer
    wrong: tuple[float, float] = (-10.0, 0.0)  # for a wrong one
    exceed: float = -10.0  # for a completion within `margin` tokens of the limit
    margin: int = 16
    weight: float = 1.0

    name: ClassVar[str] = "cosine_length"
    needs_success: ClassVar[bool] = True

    @property
    def is_inline(self) -> bool:
        return self.judge.is_inline

    def __post_init__(self) -> None:
        if self.limit <= self.margin or max(self.wrong) > 0:
            raise ConfigurationError(
                f"CosineLength needs a limit above its margin and nothing above 0 for wrong answers, got limit "
                f"{self.limit}, margin {self.margin}, wrong {self.wrong}"
            )

    def __call__(self, group: Group) -> RewardScores:
        return shaped(self, group, lambda _: list(map(self._value, group.rollouts)), self.judge)

    def _value(self, rollout: Rollout) -> float:
        length = _longest(rollout)
        if length + self.margin >= self.limit:
            return self.exceed
        first, last = self.right if is_right(rollout) else self.wrong
        return last + (first - last) * (1 + math.cos(math.pi * length / self.limit)) / 2


def _longest(rollout: Rollout) -> int:
    return max((len(turn.tokens) for turn in rollout.turns), default=0)
