"""SLEA-RL's advantage (2603.18079): rollout advantage within the group plus step advantage per observation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.errors import ConfigurationError
from strop.recipes.replay.slea_rl.observed import observed
from strop.roles import Advantage
from strop.training.arithmetic.turn_returns import set_turn_advantages, turn_returns
from strop.types import Group


@dataclass(frozen=True)
class SameObservation(Advantage):
    """A of turn k = R - mean R + weight * (return of turn k - mean return of the group's turns with its observation).

    The return is the discounted sum of rewards from the turn on. A turn with an observation of its own has step
    advantage 0; all first turns of a group have the same observation. Experiences are not part of an observation: with
    lag they may change while a group is sampled. All tokens of a turn share its advantage.
    """

    weight: float = 1.0  # of the step advantage, relative to the rollout's
    discount: float = 0.95  # from turn to turn

    min_group: ClassVar[int] = 2
    is_local: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.discount <= 1:
            raise ConfigurationError(f"SameObservation needs a discount from 0 to 1, got {self.discount}")

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            mean = float(group.rewards.mean()) if group.scored else 0.0
            returns = [turn_returns(rollout, self.discount) for rollout in group.scored]
            seen = defaultdict[str, list[float]](list)
            for rollout, own in zip(group.scored, returns, strict=True):
                for turn, value in zip(rollout.turns, own, strict=True):
                    seen[observed(turn.told)].append(value)
            means = {observation: float(np.mean(values)) for observation, values in seen.items()}
            for rollout, own in zip(group.scored, returns, strict=True):
                steps = [value - means[observed(turn.told)] for turn, value in zip(rollout.turns, own, strict=True)]
                set_turn_advantages(rollout, [rollout.reward - mean + self.weight * step for step in steps])
