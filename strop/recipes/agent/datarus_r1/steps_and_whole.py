"""Hierarchical reward (Datarus-R1, 2508.13382): mean of executed steps, and the rollout as a whole.

Reading: rules stand for the paper's reward model. A step is good where no answer of its tools begins with an error, and
`whole` judges the end; a rollout without a step has 0 for its steps.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from strop.filter.reward_values import RewardScores, shaped
from strop.roles import Reward
from strop.success import success
from strop.types import Group, Rollout

_ERROR = "error"


@dataclass(frozen=True)
class StepsAndWhole(Reward):
    """(mean over steps + whole) / 2."""

    whole: Reward  # says how right a rollout is

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
