"""Advantage turn by turn: what came after a turn, against what came after the same turn of the siblings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.roles import Advantage
from strop.training.arithmetic.turn_returns import set_turn_advantages, turn_returns
from strop.types import Group


@dataclass(frozen=True)
class TurnMean(Advantage):
    """A of turn k = return of turn k - mean over the siblings that have a turn k; all tokens of a turn share it.

    The return is the discounted sum of what the environment paid from that turn on. A rollout that the environment did
    not pay by turn has its whole reward at its end.
    """

    discount: float = 1.0  # from turn to turn

    min_group: ClassVar[int] = 2

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            returns = [turn_returns(rollout, self.discount) for rollout in group.scored]
            longest = max((len(each) for each in returns), default=0)
            means = [float(np.mean([each[k] for each in returns if len(each) > k])) for k in range(longest)]
            for rollout, own in zip(group.scored, returns, strict=True):
                set_turn_advantages(rollout, [value - means[k] for k, value in enumerate(own)])
