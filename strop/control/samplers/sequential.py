"""Sequential curriculum: one sampler after the other (Curr-ReFT's three stages, 2503.07065).

Papers: curr-reft
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from strop.errors import ConfigurationError
from strop.roles import PassRateEstimator, Sampler
from strop.types import Group, Metrics, Task


@dataclass(frozen=True)
class Staged(Sampler):
    """Stage k lasts `steps[k]` weight versions, the last one without end; observations change nothing."""

    stages: tuple[Sampler, ...]
    steps: tuple[int, ...]  # of every stage but the last

    def __post_init__(self) -> None:
        if not self.stages or len(self.steps) != len(self.stages) - 1 or min(self.steps, default=1) < 1:
            raise ConfigurationError(
                f"Staged needs stages, and steps >= 1 for all but the last; got {len(self.stages)} and {self.steps}"
            )

    def stage(self, step: int) -> int:
        return bisect_right(list(accumulate(self.steps)), step)

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        return self.stages[self.stage(step)].next(step, estimator)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing itself; says which stage the groups are of, from 0 on."""
        return {"stage": sum(self.stage(group.version) for group in groups) / max(len(groups), 1)}
