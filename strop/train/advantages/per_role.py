"""A baseline for each role: where one policy plays several, a turn is compared with turns of its own kind only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.roles import Advantage
from strop.train.arithmetic.turn_credit import credit_turns, role_of, turn_returns
from strop.types import Group


@dataclass(frozen=True)
class PerRole(Advantage):
    """A of a turn = its return - the mean return of all turns of its role in the group.

    The role of turn k is the number its agent left as the fact `role/k`, 0 where it left none: with one role and one
    turn per attempt this is the group mean.
    """

    discount: float = 1.0  # from turn to turn

    min_group: ClassVar[int] = 2

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            returns = [turn_returns(attempt, self.discount) for attempt in group.scored]
            by_role: defaultdict[int, list[float]] = defaultdict(list)
            for attempt, own in zip(group.scored, returns, strict=True):
                for turn, value in enumerate(own):
                    by_role[role_of(attempt, turn)].append(value)
            means = {role: float(np.mean(values)) for role, values in by_role.items()}
            for attempt, own in zip(group.scored, returns, strict=True):
                credit_turns(attempt, [value - means[role_of(attempt, turn)] for turn, value in enumerate(own)])
