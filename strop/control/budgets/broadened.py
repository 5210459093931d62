"""BroRL's step to many attempts (2510.01180): where more steps no longer help, more attempts at each task do.

The one term of a step that can lower the mass of right answers is that of right answers nobody sampled: p^2 (1 - p)^N
for an answer of probability p, which vanishes as N grows.
Papers: brorl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strop.errors import ConfigurationError
from strop.roles import Budget
from strop.types import Group, Metrics


@dataclass(frozen=True)
class Broadened(Budget):
    """`size` attempts at tasks admitted before version `after`, `broad` from then on."""

    size: int = 16  # attempts at first
    broad: int = 512  # attempts then
    after: int = 100  # versions of the weights

    def __post_init__(self) -> None:
        if not 1 <= self.size <= self.broad or self.after < 0:
            raise ConfigurationError(
                f"Broadened needs 1 <= size <= broad and after >= 0, got {self.size}, {self.broad} and {self.after}"
            )

    def attempts(self, group: Group) -> int:
        if group.trajectories:
            return 0
        return self.size if group.version < self.after else self.broad

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how many attempts a group of the draw has, and how often both kinds are among them."""
        count = max(len(groups), 1)
        mixed = [0 < sum(attempt.reward > 0 for attempt in group.scored) < len(group.scored) for group in groups]
        made = sum(len(group.trajectories) for group in groups)
        return {
            "attempts_per_group": made / count,
            "broadness": made / count / self.size,
            "mixed_share": sum(mixed) / count,
        }
