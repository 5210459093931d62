"""A baseline for each role: where one policy plays several, a turn is compared with turns of its own kind only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.roles import Advantage
from strop.training.arithmetic.turn_returns import set_turn_advantages, turn_returns
from strop.types import Group


@dataclass(frozen=True)
class PerRole(Advantage):
    """A of a turn = its return - the mean return of all turns of its role in the group.

    The role of a turn is the policy name in which it was sampled: with one policy name and one turn per rollout this is
    the group mean. Nothing is discounted from turn to turn: policy names in contexts of their own have no order.
    """

    min_group: ClassVar[int] = 2

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            returns = [turn_returns(rollout, 1.0) for rollout in group.scored]
            by_role: defaultdict[str, list[float]] = defaultdict(list)
            for rollout, own in zip(group.scored, returns, strict=True):
                for turn, value in zip(rollout.turns, own, strict=True):
                    by_role[turn.sampling.policy_name].append(value)
            means = {role: float(np.mean(values)) for role, values in by_role.items()}
            for rollout, own in zip(group.scored, returns, strict=True):
                turns = zip(rollout.turns, own, strict=True)
                set_turn_advantages(rollout, [value - means[turn.sampling.policy_name] for turn, value in turns])
