"""MC-GRPO: median baseline from one extra rollout per group; the median rollout is not trained on.

Title: MC-GRPO: Median-Centered Group Relative Policy Optimization for Small-Rollout Reinforcement Learning
Paper: arXiv 2601.22582 (2026)
Claim: Groups of 2 come within 1 % of groups of 8.
Reading: The paper divides by the median absolute deviation. It is 0 in most groups of 0/1 rewards and gives the one
    deviating rollout an advantage of 1000. `scale=none` does not divide.
Acts: kept_share < 1 and advantage_mean != 0
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


@dataclass(frozen=True)
class WithoutMedian(Gate):
    """Gate that drops one median rollout and stores the group's median, MAD and std as facts of the others.

    Of several rollouts at the median the first is dropped; the others stay with advantage 0 and count in means. In a
    group of even size the median is the lower of the two in the middle.
    """

    min_group: ClassVar[int] = 3

    def __call__(self, group: Group) -> GateResult:
        rollouts = group.scored
        if len(rollouts) < 2:
            return GateResult(None, f"a median needs at least 2 scored rollouts, got {len(rollouts)}")
        rewards = np.array([rollout.reward for rollout in rollouts], dtype=np.float64)
        median = _lower_median(rewards)
        measured = {
            "median": median,
            "median_mad": _lower_median(np.abs(rewards - median)),
            "median_std": float(rewards.std(ddof=1)),
        }
        dropped = int(np.flatnonzero(rewards == median)[0])
        kept = [replace(a, facts=a.facts | measured) for index, a in enumerate(rollouts) if index != dropped]
        return GateResult(replace(group, rollouts=kept), f"dropped the median rollout, reward {median:g}")


def _lower_median(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    return float(np.sort(values)[(len(values) - 1) // 2])


_SCALES = ("median_mad", "median_std", "none")


@dataclass(frozen=True)
class MedianCentred(Advantage):
    """A = (r - median) / (scale + epsilon), median and scale of the whole group from the gate `WithoutMedian`.

    The paper's scale is the median absolute deviation, which is 0 in most groups of 0/1 rewards: the one deviating
    rollout would get +-1000. `none` does not divide. `rescale` multiplies by group size / rollouts with a nonzero
    advantage, as one of the released scripts does.
    """

    scale: str = "median_mad"  # divisor: none, median_std or median_mad
    epsilon: float = 1e-3
    rescale: bool = False  # whether to multiply by group size / rollouts with a nonzero advantage

    def __post_init__(self) -> None:
        if self.scale not in _SCALES:
            raise ConfigurationError(f"MedianCentred has no scale {self.scale!r}: {nearest(self.scale, _SCALES)}")

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            advantages = [self._advantage(rollout) for rollout in group.scored]
            nonzero = sum(advantage != 0 for advantage in advantages)
            factor = (len(advantages) + 1) / nonzero if self.rescale and nonzero else 1.0
            for rollout, advantage in zip(group.scored, advantages, strict=True):
                rollout.set_advantage(factor * advantage)

    def _advantage(self, rollout: Rollout) -> float:
        if "median" not in rollout.facts:
            raise ConfigurationError(
                f"MedianCentred found no median for rollout {rollout.id}: add the gate WithoutMedian()"
            )
        difference = rollout.reward - rollout.facts["median"]
        return difference if self.scale == "none" else difference / (rollout.facts[self.scale] + self.epsilon)


def mc_grpo(
    setting: Setting = Setting(),
    scale: str = "none",  # divisor: none, median_std or median_mad
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
) -> Run:
    """Samples `group_size` + 1 rollouts per group and trains on `group_size` of them."""
    parts = {"gates": (WithoutMedian(),), "budget": Fixed(setting.group_size + 1)}
    return setting.run("mc_grpo", MedianCentred(scale), (Clip(clip, clip),), **parts)
