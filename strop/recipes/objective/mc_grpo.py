"""One attempt more than is trained, and the median of them all as the baseline.

Title: MC-GRPO: Median-Centered Group Relative Policy Optimization for Small-Rollout Reinforcement Learning
Paper: arXiv 2601.22582 (2026)
Claim: Groups of 2 come within 1 % of groups of 8.
Reading: The paper divides by the median distance, which is 0 in most groups of 0/1 rewards and gives the odd one out
    a credit of 1000; `scale` none does not divide.
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
from strop.types import Group, Trajectory, Verdict

# MC-GRPO's trimming (2601.22582): the median attempt is the baseline, and exactly one attempt leaves with it.
#
# Reading: among attempts that are all at the median the first leaves; the others stay, with no credit, and count in
# means. In a group of even size the median is the lower of the two in the middle.


@dataclass(frozen=True)
class WithoutMedian(Gate):
    """Take one median attempt out; the others carry median, its mad and the std of the whole group as facts."""

    min_group: ClassVar[int] = 3

    def __call__(self, group: Group) -> Verdict:
        attempts = group.scored
        if len(attempts) < 2:
            return Verdict(None, f"{len(attempts)} attempts have no median to leave out")
        rewards = np.array([attempt.reward for attempt in attempts], dtype=np.float64)
        median = _lower_median(rewards)
        measured = {
            "median": median,
            "median_mad": _lower_median(np.abs(rewards - median)),
            "median_std": float(rewards.std(ddof=1)),
        }
        out = int(np.flatnonzero(rewards == median)[0])
        kept = [replace(a, facts=a.facts | measured) for index, a in enumerate(attempts) if index != out]
        return Verdict(replace(group, trajectories=kept), f"left out the median attempt, of reward {median:g}")


def _lower_median(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    return float(np.sort(values)[(len(values) - 1) // 2])


# MC-GRPO's credit (2601.22582): against the median of one attempt more than is trained.
#
# The gate `WithoutMedian` takes the median attempt out and leaves what it measured on the others.

_SCALES = ("median_mad", "median_std", "none")


@dataclass(frozen=True)
class MedianCentred(Advantage):
    """A = (r - median) / (scale + epsilon), median and scale of the group before its median attempt was taken out.

    The paper's scale is the median distance to the median, which is 0 for most groups of 0/1 rewards: the odd one out
    would get +-1000. `none` does not divide. `rescale` multiplies by group size / attempts whose credit is not 0, as
    one of the released scripts does.
    """

    scale: str = "median_mad"  # none, median_std or median_mad: what divides
    epsilon: float = 1e-3
    rescale: bool = False  # for attempts whose credit is 0

    def __post_init__(self) -> None:
        if self.scale not in _SCALES:
            raise ConfigurationError(f"MedianCentred has no scale {self.scale!r}: {nearest(self.scale, _SCALES)}")

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            credits = [self._credit(attempt) for attempt in group.scored]
            moved = sum(credit != 0 for credit in credits)
            factor = (len(credits) + 1) / moved if self.rescale and moved else 1.0
            for attempt, credit in zip(group.scored, credits, strict=True):
                attempt.set_advantage(factor * credit)

    def _credit(self, attempt: Trajectory) -> float:
        if "median" not in attempt.facts:
            raise ConfigurationError(
                f"MedianCentred needs the median of attempt {attempt.id}'s group: add the gate WithoutMedian()"
            )
        difference = attempt.reward - attempt.facts["median"]
        return difference if self.scale == "none" else difference / (attempt.facts[self.scale] + self.epsilon)


def mc_grpo(
    setting: Setting = Setting(),
    scale: str = "none",  # none, median_std or median_mad: what divides
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """`group_size` attempts are trained; the paper's scale, `median_mad`, is 0 in most groups of 0/1 rewards."""
    parts = {"gates": (WithoutMedian(),), "budget": Fixed(setting.group_size + 1)}
    return setting.run("mc_grpo", MedianCentred(scale), (Clip(clip, clip),), **parts)
