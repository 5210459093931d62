"""One rollout more than is trained, and the median of them all as the baseline.

Title: MC-GRPO: Median-Centered Group Relative Policy Optimization for Small-Rollout Reinforcement Learning
Paper: arXiv 2601.22582 (2026)
Claim: Groups of 2 come within 1 % of groups of 8.
Reading: The paper divides by the median distance, which is 0 in most groups of 0/1 rewards and gives the odd one out
    an advantage of 1000; `scale` none does not divide.
Acts: kept_share < 1 and credit_mean != 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from strop.control.budgets.fixed import Fixed
from strop.errors import ConfigurationError, nearest
from strop.recipes.setting import Setting
from strop.roles import Advantage, Gate
from strop.run import Run
from strop.training.losses.clip import Clip
from strop.types import GateResult, Group, Rollout

# MC-GRPO's trimming (2601.22582): the median rollout is the baseline, and exactly one rollout leaves with it.
#
# Reading: among rollouts that are all at the median the first leaves; the others stay, with no advantage, and count in
# means. In a group of even size the median is the lower of the two in the middle.


@dataclass(frozen=True)
class WithoutMedian(Gate):
    """Take one median rollout out; the others carry median, its mad and the std of the whole group as facts."""

    min_group: ClassVar[int] = 3

    def __call__(self, group: Group) -> GateResult:
        rollouts = group.scored
        if len(rollouts) < 2:
            return GateResult(None, f"{len(rollouts)} rollouts have no median to leave out")
        rewards = np.array([rollout.reward for rollout in rollouts], dtype=np.float64)
        median = _lower_median(rewards)
        measured = {
            "median": median,
            "median_mad": _lower_median(np.abs(rewards - median)),
            "median_std": float(rewards.std(ddof=1)),
        }
        out = int(np.flatnonzero(rewards == median)[0])
        kept = [replace(a, facts=a.facts | measured) for index, a in enumerate(rollouts) if index != out]
        return GateResult(replace(group, rollouts=kept), f"left out the median rollout, of reward {median:g}")


def _lower_median(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    return float(np.sort(values)[(len(values) - 1) // 2])


# MC-GRPO's advantage (2601.22582): against the median of one rollout more than is trained.
#
# The gate `WithoutMedian` takes the median rollout out and leaves what it measured on the others.

_SCALES = ("median_mad", "median_std", "none")


@dataclass(frozen=True)
class MedianCentred(Advantage):
    """A = (r - median) / (scale + epsilon), median and scale of the group before its median rollout was taken out.

    The paper's scale is the median distance to the median, which is 0 for most groups of 0/1 rewards: the odd one out
    would get +-1000. `none` does not divide. `rescale` multiplies by group size / rollouts whose advantage is not 0, as
    one of the released scripts does.
    """

    scale: str = "median_mad"  # none, median_std or median_mad: what divides
    epsilon: float = 1e-3
    rescale: bool = False  # for rollouts whose advantage is 0

    def __post_init__(self) -> None:
        if self.scale not in _SCALES:
            raise ConfigurationError(f"MedianCentred has no scale {self.scale!r}: {nearest(self.scale, _SCALES)}")

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            advantages = [self._advantage(rollout) for rollout in group.scored]
            moved = sum(advantage != 0 for advantage in advantages)
            factor = (len(advantages) + 1) / moved if self.rescale and moved else 1.0
            for rollout, advantage in zip(group.scored, advantages, strict=True):
                rollout.set_advantage(factor * advantage)

    def _advantage(self, rollout: Rollout) -> float:
        if "median" not in rollout.facts:
            raise ConfigurationError(
                f"MedianCentred needs the median of rollout {rollout.id}'s group: add the gate WithoutMedian()"
            )
        difference = rollout.reward - rollout.facts["median"]
        return difference if self.scale == "none" else difference / (rollout.facts[self.scale] + self.epsilon)


def mc_grpo(
    setting: Setting = Setting(),
    scale: str = "none",  # none, median_std or median_mad: what divides
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """`group_size` rollouts are trained; the paper's scale, `median_mad`, is 0 in most groups of 0/1 rewards."""
    parts = {"gates": (WithoutMedian(),), "budget": Fixed(setting.group_size + 1)}
    return setting.run("mc_grpo", MedianCentred(scale), (Clip(clip, clip),), **parts)
