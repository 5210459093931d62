"""UI-S1's credit (2509.11543): a step against the same step of siblings, plus the attempt against its siblings.

Papers: ui-s1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.training.arithmetic.turn_returns import credit_turns
from strop.types import Group, Metrics, Trajectory

_ROUNDING = 1e-6


@dataclass(frozen=True)
class StepAndEpisode(Advantage):
    """A of turn k = step * standardised return of turn k + episode * standardised reward of the attempt.

    The return of a turn with its full pay (1: the expert's action) reaches on to the next one's, discounted; that of
    any other is its own pay, and nothing of it or of what follows reaches back. Steps are compared with those of the
    same number; one that nobody else has gets 0. Each attempt counts once in the mean of rewards.
    """

    discount: float = 0.5  # from turn to turn
    step: float = 1.0  # weight of step credit
    episode: float = 1.0  # weight of the attempt's

    min_group: ClassVar[int] = 2
    is_local: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.discount <= 1:
            raise ConfigurationError(f"StepAndEpisode needs a discount from 0 to 1, got {self.discount}")

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            attempts = group.scored
            returns = [step_returns(attempt, self.discount) for attempt in attempts]
            longest = max(map(len, returns), default=0)
            steps = [_standardised([each[k] for each in returns if len(each) > k]) for k in range(longest)]
            columns = [iter(column.tolist()) for column in steps]
            for attempt, own, whole in zip(attempts, returns, _standardised(group.rewards), strict=True):
                credits = [self.step * next(columns[k]) + self.episode * float(whole) for k in range(len(own))]
                credit_turns(attempt, credits)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """How many steps of an attempt were the expert's, and after how many it was put back on the path."""
        attempts = [attempt for group in groups for attempt in group.scored]
        matched = sum(_is_match(paid) for attempt in attempts for paid in attempt.turn_rewards)
        mended = sum(turn.fresh for attempt in attempts for turn in attempt.turns)
        count = max(len(attempts), 1)
        return {"steps_matched": matched / count, "steps_mended": mended / count}


def step_returns(attempt: Trajectory, discount: float) -> list[float]:
    """What each turn and those after it were paid, as far as the expert was followed."""
    if len(attempt.turn_rewards) != len(attempt.turns):
        raise ConfigurationError(f"StepAndEpisode needs pay for each turn of attempt {attempt.id}: use an agent's")
    later, found = 0.0, list[float]()
    for paid in reversed(attempt.turn_rewards):
        found.append(paid + discount * later if _is_match(paid) else paid)
        later = found[-1] if _is_match(paid) else 0.0
    return found[::-1]


def _is_match(paid: float) -> bool:
    return paid >= 1 - _ROUNDING


def _standardised(values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """In units of the sample spread; zeros where all are equal or there is one."""
    centred = np.asarray(values, dtype=np.float64)
    centred = centred - centred.mean() if len(centred) else centred
    spread = centred.std(ddof=1) if len(centred) > 1 else 0.0
    return centred / (spread + _ROUNDING) if spread > _ROUNDING else np.zeros(len(centred))
