"""GVL's advantage-weighted regression (2411.04549): a turn counts by how much progress it made.

Papers: gvl
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.errors import ConfigurationError
from strop.filter.judges.progress_frames import PROGRESS
from strop.roles import Advantage
from strop.types import Group, Metrics, Trajectory


@dataclass(frozen=True)
class ProgressWeighted(Advantage):
    """exp(sharpness * (progress after the turn - progress before it)) for all tokens of a turn; 1 where none was told.

    Progress before the first turn is 0, as is that of the first turn itself, with which all others are compared.
    """

    sharpness: float = 1.0  # 0: plain imitation

    is_local: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.sharpness < 0:
            raise ConfigurationError(f"ProgressWeighted needs sharpness >= 0, got {self.sharpness}")

    def __call__(self, groups: Sequence[Group]) -> None:
        for attempt in (attempt for group in groups for attempt in group.scored):
            weights, sizes = self.weights(attempt), [len(turn.tokens) for turn in attempt.turns]
            attempt.advantages = np.repeat(np.array(weights, np.float32), sizes)

    def weights(self, attempt: Trajectory) -> list[float]:
        """One per turn."""
        told = [attempt.facts.get(f"{PROGRESS}{turn}") for turn in range(len(attempt.turns))]
        made = [
            0.0 if now is None or before is None else now - before
            for before, now in zip([0.0, *told], told, strict=False)
        ]
        return [math.exp(self.sharpness * each) for each in made]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how unevenly turns count."""
        weights = [each for group in groups for attempt in group.scored for each in self.weights(attempt)]
        return {"progress_weight_spread": float(np.std(weights)) if weights else 0.0}
