"""MC-GRPO's trimming (2601.22582): the median attempt is the baseline, and exactly one attempt leaves with it.

Reading: among attempts that are all at the median the first leaves; the others stay, with no credit, and count in
means. In a group of even size the median is the lower of the two in the middle.
Papers: mc-grpo
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from strop.roles import Gate
from strop.types import Group, Verdict


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
