"""Rewards of Datarus-R1 (2508.13382): executed steps and the whole rollout, with a cosine schedule between two rewards.

Reading: rules stand for the paper's reward model. A step is good where no answer of its tools begins with an error, and
`whole` judges the end; a rollout without a step has 0 for its steps. The schedule's formula is ours: its time is the
version at which a group was admitted, also after a resume.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.needs import TOOLS, EnvNeed
from strop.errors import ConfigurationError
from strop.filter.reward_values import RewardScores, shaped
from strop.roles import Reward
from strop.success import success
from strop.types import Group, Rollout


@dataclass(frozen=True)
class CosineShift(Reward):
    """w * first + (1 - w) * second, with w = (1 + cos(pi t / total)) / 2 at version t, and 0 from `total` on."""

    first: Reward
    second: Reward
    total: int  # versions after which the second one counts alone

    def __post_init__(self) -> None:
        if self.total < 1:
            raise ConfigurationError(f"CosineShift needs total >= 1, got {self.total}")

    @property
    def is_inline(self) -> bool:
        return self.first.is_inline and self.second.is_inline

    def share(self, version: int) -> float:
        """Of the first reward."""
        return (1 + math.cos(math.pi * min(version / self.total, 1.0))) / 2

    def __call__(self, group: Group) -> RewardScores:
        share = self.share(group.version)
        for rollout in group.rollouts:
            rollout.facts["first_share"] = share

        def mixed(first: Sequence[float], second: Sequence[float]) -> list[float]:
            return [share * one + (1 - share) * other for one, other in zip(first, second, strict=True)]

        return shaped(self, group, mixed, self.first, self.second)


_ERROR = "error"


@dataclass(frozen=True)
class StepsAndWhole(Reward):
    """(mean over steps + whole) / 2."""

    whole: Reward  # says how right a rollout is

    needs_success: ClassVar[bool] = True
    calls_tools: ClassVar[bool] = True
    env_needs: ClassVar[tuple[EnvNeed, ...]] = (TOOLS,)

    @property
    def is_inline(self) -> bool:
        return self.whole.is_inline

    def __call__(self, group: Group) -> RewardScores:
        return shaped(
            self, group, lambda _: [(_steps(each) + success(each)) / 2 for each in group.rollouts], self.whole
        )


def _steps(rollout: Rollout) -> float:
    """The share of good steps; one whose answers were never read was not carried out."""
    scores = [
        not any(message.content.startswith(_ERROR) for message in after.told)
        for before, after in itertools.pairwise(rollout.turns)
        if before.message.tool_calls
    ]
    rollout.facts |= {"steps": float(len(scores)), "good_steps": sum(scores) / max(len(scores), 1)}
    return rollout.facts["good_steps"]
