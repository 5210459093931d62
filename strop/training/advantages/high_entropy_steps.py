"""DART's choice of steps (2509.23866): only those count at which the policy was most in doubt.

Reading: steps are turns, ranked over all attempts of a draw; what is left out gets no credit and keeps its place in the
denominator. The share of 80 % could not be checked against the paper, and its release has this commented out.
Papers: dart
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.training.requirements import ENTROPY, Note
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class HighEntropySteps(Advantage):
    """The credit that `inner` gives, at the share of turns whose tokens have the highest mean entropy; 0 elsewhere."""

    inner: Advantage
    share: float = 0.8  # of turns that are credited

    needs: ClassVar[frozenset[Note]] = frozenset({ENTROPY})

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ConfigurationError(f"HighEntropySteps needs 0 < share <= 1, got {self.share}")

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        steps = [step for group in groups for attempt in group.scored for step in _steps(attempt)]
        steps.sort(key=lambda step: -step[0])  # stable: of equals the first stays
        for _, attempt, tokens in steps[math.ceil(self.share * len(steps) - 1e-9) :]:
            assert attempt.advantages is not None
            attempt.advantages[tokens] = 0.0


def _steps(attempt: Trajectory) -> Iterator[tuple[float, Trajectory, slice]]:
    """Mean entropy, owner and tokens of every turn in which something was written."""
    end = 0
    for turn in attempt.turns:
        start, end = end, end + len(turn.tokens)
        if end > start:
            yield float(np.mean(ENTROPY.of(attempt)[start:end])), attempt, slice(start, end)
