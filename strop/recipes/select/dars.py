"""DARS: a second wave of rollouts equalizes the advantage mass of hard and medium tasks; large batches, two epochs.

Title: Depth-Breadth Synergy in RLVR: Unlocking LLM Reasoning Gains with Adaptive Exploration
Paper: arXiv 2508.13755 (2025)
Claim: Better pass@1 and pass@k at once than more rollouts or larger batches alone.
Reading: As released: 8 rollouts, at most 32 (64 by hardness), rewards minus the mean over both waves, tokens over a
    constant, the whole batch as one minibatch, in two epochs. Its 3072 tasks per batch are 32 here.
Left out: The variant that divides by the standard deviation, which no released run uses. The release's entropy bonus of
    0.001.
Acts: rollouts_added > 0
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.filter.gates.zero_variance import ZeroVariance
from strop.recipes.setting import Setting
from strop.roles import Budget
from strop.run import Run
from strop.success import successes
from strop.training.advantages.group_relative import GroupMean
from strop.training.losses.clip import Clip
from strop.training.reductions.means import ConstantLength
from strop.types import Group, Metrics

# DARS's second wave (2508.13755): hard tasks get more rollouts, so that their total advantage is as large as others'.
#
# Without division by the standard deviation, n rollouts with the share a right have the total |advantage| n * 2a(1 -
# a): largest at a = 1/2, smallest for hard tasks. Reading: as released. A task without a success counts as half a
# success; one that at least half of the rollouts solved gets no more. Pass rates over whole groups overweight hard
# tasks from here on.

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Rebalanced(Budget):
    """Budget of `size` rollouts, then as many more as a hard task needs to reach the total |advantage| of a half-solved
    one.

    With `by_hardness` the target is 2(1 - a) times as large: harder tasks then weigh more than half-solved ones.
    """

    size: int = 8  # rollouts of the first wave
    most: int = 32  # rollouts of both waves
    by_hardness: bool = False  # whether harder tasks weigh more than half-solved ones, not the same

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 2 <= self.size <= self.most:
            raise ConfigurationError(f"Rebalanced needs 2 <= size <= most, got {self.size} and {self.most}")

    def rollouts(self, group: Group) -> int:
        made = len(group.rollouts)
        return max(self.wanted(group) - made, 0) if made else self.size

    def wanted(self, group: Group) -> int:
        """Number of rollouts in all, by the success of the first wave."""
        right, count = successes(self._first(group))
        if not count or right >= count / 2:
            return self.size
        share = right / count or 0.5 / count
        advantage, even = 2 * share * (1 - share), count / 2  # of one rollout; of a wave at p = 1/2
        goal = even * (2 * (1 - share) if self.by_hardness else 1)
        return min(self.size + math.ceil(goal / advantage - count - _ROUNDING), self.most)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: rollouts added, and share of groups whose only successes are among those."""
        added = [max(len(group.rollouts) - self.size, 0) for group in groups]
        saved = [successes(group)[0] > 0 and successes(self._first(group))[0] == 0 for group in groups]
        count = max(len(groups), 1)
        return {"rollouts_added": sum(added) / count, "saved_share": sum(saved) / count}

    def _first(self, group: Group) -> Group:
        return replace(group, rollouts=group.rollouts[: self.size])


def dars(
    setting: Setting = Setting(groups_per_step=32),
    most: int = 32,  # rollouts of one task, both waves together; the paper has 64 with by_hardness
    by_hardness: bool = False,  # whether harder tasks weigh more than half-solved ones, not the same
) -> Run:
    """`group_size` rollouts first, then up to `most` for tasks that fewer than half of them solved."""
    return setting.run(
        "dars",
        GroupMean(),
        (Clip(0.2, 0.2),),
        budget=Rebalanced(setting.group_size, most, by_hardness),
        gates=(ZeroVariance(),),
        reduction=ConstantLength(setting.max_tokens),
        epochs=2,
    )
