"""DigiRL's credit (2406.11896): attempts that did better than their task let expect, and in them steps that helped.

Reading: the release's form of step advantages.
Papers: digirl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from strop.control.seeded_choice import highest
from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.training.arithmetic.turn_returns import on_written, turn_bounds, turn_payments
from strop.types import Group, Metrics, Trajectory


@dataclass(frozen=True)
class HardFiltered(Advantage):
    """1 for the tokens of turn h of a chosen attempt where A_h > 0, else 0.

    A_h = V_(h+1) - V_h - cost + r_h + discount^(H - h) * R, with V before a turn's first token and 0 after the last.
    Chosen is the `share` of the draw's attempts with the largest R - V of the task, V before the first token of all;
    none that equals the worst of the draw, or where all fail alike all would be imitated.
    """

    share: float = 0.1  # of the attempts of a draw
    by: Literal["instruction", "reward", "chance"] = "instruction"  # what is ranked: R - V, R, or nothing
    cost: float = 0.05  # of a step
    discount: float = 0.5  # of the outcome, from turn to turn

    needs_values: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1 or not 0 <= self.discount <= 1:
            raise ConfigurationError(f"HardFiltered needs 0 < share <= 1 and 0 <= discount <= 1, got {self}")

    def __call__(self, groups: Sequence[Group]) -> None:
        attempts = [attempt for group in groups for attempt in group.scored]
        for attempt in attempts:
            attempt.set_advantage(0.0)
        for attempt in self._chosen(attempts, groups):
            steps = step_advantages(attempt, self.cost, self.discount)
            lengths = [len(turn.tokens) for turn in attempt.turns if len(turn.tokens)]
            attempt.advantages = np.repeat(np.array([step > 0 for step in steps], np.float32), lengths)

    def _chosen(self, attempts: Sequence[Trajectory], groups: Sequence[Group]) -> list[Trajectory]:
        written = [attempt for attempt in attempts if attempt.num_tokens]
        scores = [self._score(attempt) for attempt in written]
        count = int(self.share * len(attempts) + 1e-9)
        places = highest(scores, count, [group.number for group in groups])
        return [written[place] for place in places if self.by == "chance" or scores[place] > min(scores)]

    def _score(self, attempt: Trajectory) -> float:
        if self.by == "instruction":
            return attempt.reward - float(values_of(attempt)[0])
        return attempt.reward if self.by == "reward" else 0.0

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how many attempts have a step that is imitated, and which share of all tokens that is."""
        given = [attempt.advantages for group in groups for attempt in group.scored if attempt.advantages is not None]
        tokens = np.concatenate([*given, np.zeros(0, np.float32)])
        imitated = float(np.mean([bool(each.any()) for each in given])) if given else 0.0
        return {"imitated_share": imitated, "imitated_tokens": float(tokens.mean()) if len(tokens) else 0.0}


def step_advantages(attempt: Trajectory, cost: float, discount: float) -> list[float]:
    """Of each turn that wrote something: [U]."""
    first, _ = turn_bounds(attempt)
    values = np.append(values_of(attempt)[first], 0.0)  # [U + 1]
    paid = on_written(attempt, turn_payments(attempt))
    left = range(len(first) - 1, -1, -1)
    gains = values[1:] - values[:-1]
    return [
        float(gain - cost + own + discount**ahead * attempt.reward)
        for gain, own, ahead in zip(gains, paid, left, strict=True)
    ]


def values_of(attempt: Trajectory) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    if attempt.values is None or len(attempt.values) != attempt.num_tokens:
        raise ConfigurationError(f"HardFiltered needs a value for each token of attempt {attempt.id}: add a critic")
    return attempt.values.astype(np.float64)
