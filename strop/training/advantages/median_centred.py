"""MC-GRPO's credit (2601.22582): against the median of one attempt more than is trained.

The gate `WithoutMedian` takes the median attempt out and leaves what it measured on the others.
Papers: mc-grpo
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strop.errors import ConfigurationError, nearest
from strop.roles import Advantage
from strop.types import Group, Trajectory

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
                attempt.credit(factor * credit)

    def _credit(self, attempt: Trajectory) -> float:
        if "median" not in attempt.facts:
            raise ConfigurationError(
                f"MedianCentred needs the median of attempt {attempt.id}'s group: add the gate WithoutMedian()"
            )
        difference = attempt.reward - attempt.facts["median"]
        return difference if self.scale == "none" else difference / (attempt.facts[self.scale] + self.epsilon)
