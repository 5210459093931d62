"""MasHost's credit (2506.08507): whole teams are compared with each other, and every action is worth something itself.

Papers: mashost
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.roles import Advantage
from strop.training.arithmetic.turn_returns import placed_payments
from strop.types import Group, Metrics

_DIGITS = 6  # payments are noted in single precision: what teams of equal reward differ by beyond is not theirs


@dataclass(frozen=True)
class ActionWise(Advantage):
    """A of a token = (R - mean of siblings' R) / (std + epsilon) + what rewards paid within the token's turn.

    R is the reward without what was paid at places: that part is absolute, and compared with nobody.
    """

    epsilon: float = 1e-6

    min_group: ClassVar[int] = 2

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            placed = [placed_payments(attempt) for attempt in group.scored]  # [N] each
            whole = [a.reward - own.sum() for a, own in zip(group.scored, placed, strict=True)]
            rewards = np.round(whole, _DIGITS)
            standard = (rewards - rewards.mean()) / (rewards.std() + self.epsilon) if len(rewards) else rewards
            for attempt, own, value in zip(group.scored, placed, standard, strict=True):
                lengths = [len(turn.tokens) for turn in attempt.turns]
                turns = np.split(own, np.cumsum(lengths)[:-1]) if lengths else []
                within = np.repeat([part.sum() for part in turns], lengths) if lengths else own
                attempt.advantages = (value + within).astype(np.float32)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says what was paid at places on average, and in how many voices an attempt spoke."""
        attempts = [attempt for group in groups for attempt in group.scored]
        voices = [len({turn.sampling.voice for turn in attempt.turns}) for attempt in attempts]
        paid = [float(placed_payments(attempt).sum()) for attempt in attempts]
        return {"action_pay": float(np.mean(paid)), "team_voices": float(np.mean(voices))} if attempts else {}
