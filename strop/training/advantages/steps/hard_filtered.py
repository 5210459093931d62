"""DigiRL's hard-filtered advantage (2406.11896): imitate good steps of rollouts that beat their task's value.

Reading: step advantages as in the released code.
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
from strop.types import Group, Metrics, Rollout


@dataclass(frozen=True)
class HardFiltered(Advantage):
    """1 for the tokens of turn h of a selected rollout where A_h > 0, else 0.

    A_h = V_(h+1) - V_h - cost + r_h + discount^(H - h) * R, with V before a turn's first token and 0 after the last.
    Selected are the `share` of the batch's rollouts with the largest R - V of the task, V before the first token of
    all; never one that equals the worst of the batch, so that a batch of equal failures is not imitated.
    """

    share: float = 0.1  # of the rollouts of a batch
    by: Literal["instruction", "reward", "random"] = "instruction"  # ranking: R - V, R, or random
    cost: float = 0.05  # of a step
    discount: float = 0.5  # of the outcome, from turn to turn

    needs_values: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1 or not 0 <= self.discount <= 1:
            raise ConfigurationError(f"HardFiltered needs 0 < share <= 1 and 0 <= discount <= 1, got {self}")

    def __call__(self, groups: Sequence[Group]) -> None:
        rollouts = [rollout for group in groups for rollout in group.scored]
        for rollout in rollouts:
            rollout.set_advantage(0.0)
        for rollout in self._chosen(rollouts, groups):
            steps = step_advantages(rollout, self.cost, self.discount)
            lengths = [len(turn.tokens) for turn in rollout.turns if len(turn.tokens)]
            rollout.advantages = np.repeat(np.array([step > 0 for step in steps], np.float32), lengths)

    def _chosen(self, rollouts: Sequence[Rollout], groups: Sequence[Group]) -> list[Rollout]:
        written = [rollout for rollout in rollouts if rollout.num_tokens]
        scores = [self._score(rollout) for rollout in written]
        count = int(self.share * len(rollouts) + 1e-9)
        places = highest(scores, count, [group.number for group in groups])
        return [written[place] for place in places if self.by == "random" or scores[place] > min(scores)]

    def _score(self, rollout: Rollout) -> float:
        if self.by == "instruction":
            return rollout.reward - float(values_of(rollout)[0])
        return rollout.reward if self.by == "reward" else 0.0

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Train nothing; reports the number of rollouts with an imitated step, and the share of imitated tokens."""
        given = [rollout.advantages for group in groups for rollout in group.scored if rollout.advantages is not None]
        tokens = np.concatenate([*given, np.zeros(0, np.float32)])
        imitated = float(np.mean([bool(each.any()) for each in given])) if given else 0.0
        return {"imitated_share": imitated, "imitated_tokens": float(tokens.mean()) if len(tokens) else 0.0}


def step_advantages(rollout: Rollout, cost: float, discount: float) -> list[float]:
    """The advantage of each non-empty turn: [U]."""
    first, _ = turn_bounds(rollout)
    values = np.append(values_of(rollout)[first], 0.0)  # [U + 1]
    paid = on_written(rollout, turn_payments(rollout))
    left = range(len(first) - 1, -1, -1)
    gains = values[1:] - values[:-1]
    return [
        float(gain - cost + own + discount**ahead * rollout.reward)
        for gain, own, ahead in zip(gains, paid, left, strict=True)
    ]


def values_of(rollout: Rollout) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    if rollout.values is None or len(rollout.values) != rollout.num_tokens:
        raise ConfigurationError(f"HardFiltered needs a value for each token of rollout {rollout.id}: add a critic")
    return rollout.values.astype(np.float64)
