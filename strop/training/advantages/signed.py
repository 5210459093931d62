"""Positive and negative reinforcement apart (2506.01347): right attempts pushed up, wrong ones down, by own weights.

No baseline and no spread. Leaving one side out altogether (PSR, NSR) is the gate `OneSided`, before any average is
taken: a zero weight here would keep those attempts in the loss's denominator.
Papers: nsr-psr
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strop.roles import Advantage
from strop.success import ROUNDING
from strop.types import Group


@dataclass(frozen=True)
class Signed(Advantage):
    """A = positive where the reward is 1, -negative where it is 0, and 0 for a reward between: neither right nor wrong.

    The defaults are the paper's W-REINFORCE: a tenth of the weight on what was right.
    """

    positive: float = 0.1  # credit of a right attempt
    negative: float = 1.0  # debit of a wrong one

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            for attempt in group.scored:
                attempt.credit(self._credit(attempt.reward))

    def _credit(self, reward: float) -> float:
        if abs(reward - 1.0) <= ROUNDING:
            return self.positive
        return -self.negative if abs(reward) <= ROUNDING else 0.0
