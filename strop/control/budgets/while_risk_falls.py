"""V0.5's attempts on demand (2603.10848): more of them while that lowers the baseline's risk by what one costs.

Reading: one more at a time, as in the paper, each judged by all that were made; a forecast that is not refuted ends it.
Papers: v0.5
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strop.control.prior import Prior
from strop.errors import ConfigurationError
from strop.roles import Budget
from strop.success import successes
from strop.types import Group, Metrics


@dataclass(frozen=True)
class WhileRiskFalls(Budget):
    """`first` attempts, then one after the other, up to `most`, while risk(k) - risk(k + 1) > cost."""

    first: int = 4  # attempts before the forecast is judged
    most: int = 16  # attempts in all
    cost: float = 1 / 1024  # of one attempt; that of the paper, 1 / 16^2, where rewards go from 0 to 1

    def __post_init__(self) -> None:
        if not 2 <= self.first <= self.most or self.cost <= 0:
            raise ConfigurationError(
                f"WhileRiskFalls needs 2 <= first <= most and cost > 0, got {self.first}, {self.most} and {self.cost}"
            )

    @property
    def size(self) -> int | None:
        return self.first

    def attempts(self, group: Group) -> int:
        made = len(group.trajectories)
        if not made:
            return self.first
        right, count = successes(group)
        if not count or group.foreseen is None or made >= self.most:
            return 0
        prior = Prior(group.foreseen[0], right / count, count)
        return int(prior.risk() - prior.risk(1) > self.cost)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how much was added."""
        added = [max(len(group.trajectories) - self.first, 0) for group in groups]
        return {"attempts_added": sum(added) / max(len(groups), 1)}
