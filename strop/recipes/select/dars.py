"""A second wave of rollouts of hard tasks, so that they weigh as much as even ones; large draws, trained twice.

Title: Depth-Breadth Synergy in RLVR: Unlocking LLM Reasoning Gains with Adaptive Exploration
Paper: arXiv 2508.13755 (2025)
Claim: Better pass@1 and pass@k at once than more attempts or larger batches alone.
Reading: As released: 8 rollouts, at most 32 (64 by hardness), rewards minus the mean over both waves, tokens over a
    constant, the whole batch as one minibatch, in two epochs. Its 3072 tasks a batch are 32 here.
Left out: The variant that divides by the spread, which no released run uses. The release's bonus of 0.001 on entropy.
Acts: rollouts_added > 0
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from strop.errors import ConfigurationError
from strop.filter.gates.zero_variance import ZeroVariance
from strop.recipes.setting import Setting
from strop.roles import Budget
from strop.run import Run
from strop.success import successes
from strop.training.advantages.group_mean import GroupMean
from strop.training.losses.clip import Clip
from strop.training.reductions.constant_length import ConstantLength
from strop.types import Group, Metrics

# DARS's second wave (2508.13755): what the first one found hard gets more rollouts, so that it weighs as much.
#
# Without division by the spread, the advantage of n rollouts of which the share a is right has the size n * 2a(1 - a):
# most for even tasks, least for hard ones. Reading: as released. A task that nobody solved counts as one with half a
# success, one that at least half solved gets nothing more. Pass rates over whole groups weigh hard tasks more from here
# on.

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Rebalanced(Budget):
    """`size` rollouts, then so many more that a hard task's advantage is as large as an even one's would be with
    `size`.

    With `by_hardness` it is 2(1 - a) times as large: what is harder then weighs more than what is even.
    """

    size: int = 8  # rollouts of the first wave
    most: int = 32  # rollouts of both waves
    by_hardness: bool = False  # whether harder tasks shall weigh more than even ones, and not the same

    def __post_init__(self) -> None:
        if not 2 <= self.size <= self.most:
            raise ConfigurationError(f"Rebalanced needs 2 <= size <= most, got {self.size} and {self.most}")

    def rollouts(self, group: Group) -> int:
        made = len(group.rollouts)
        return max(self.wanted(group) - made, 0) if made else self.size

    def wanted(self, group: Group) -> int:
        """How many rollouts the first wave asks for in all."""
        right, count = successes(self._first(group))
        if not count or right >= count / 2:
            return self.size
        share = right / count or 0.5 / count
        advantage, even = 2 * share * (1 - share), count / 2  # of one rollout; of a whole wave at an even task
        goal = even * (2 * (1 - share) if self.by_hardness else 1)
        return min(self.size + math.ceil(goal / advantage - count - _ROUNDING), self.most)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how much was added, and how often only that brought a success."""
        added = [max(len(group.rollouts) - self.size, 0) for group in groups]
        saved = [successes(group)[0] > 0 and successes(self._first(group))[0] == 0 for group in groups]
        count = max(len(groups), 1)
        return {"rollouts_added": sum(added) / count, "saved_share": sum(saved) / count}

    def _first(self, group: Group) -> Group:
        return replace(group, rollouts=group.rollouts[: self.size])


def dars(
    setting: Setting = Setting(groups_per_step=32),
    most: int = 32,  # rollouts of one task, both waves together; the paper has 64 with by_hardness
    by_hardness: bool = False,  # whether harder tasks shall weigh more than even ones, and not the same
) -> Run:
    """`group_size` rollouts first, then up to `most` at what was solved by fewer than half of them."""
    return setting.run(
        "dars",
        GroupMean(),
        (Clip(0.2, 0.2),),
        budget=Rebalanced(setting.group_size, most, by_hardness),
        gates=(ZeroVariance(),),
        reduction=ConstantLength(setting.max_tokens),
        epochs=2,
    )
