"""C3PO++ of Ring-1T (2510.18855): a step ends when its tokens are spent, not when a number of answers is done.

Unfinished attempts survive the update and go on under the new weights. The paper purges what survived too many rounds,
with a limit it does not give; here a step waits for such groups instead, so that nothing is thrown away.

Papers: ring-1t
"""

from __future__ import annotations

from dataclasses import dataclass

from strop.errors import ConfigurationError
from strop.roles import Pace
from strop.types import Standing


@dataclass(frozen=True)
class TokenBudget(Pace):
    """Keeps `pool` groups in flight and trains on all that are done once finished groups hold `tokens` new tokens."""

    tokens: int  # of finished groups that make a step
    pool: int = 16  # groups in flight
    lag: int = 5  # versions

    def __post_init__(self) -> None:
        if self.tokens < 1 or self.pool < 1 or self.lag < 0:
            raise ConfigurationError(
                f"TokenBudget needs tokens >= 1, pool >= 1 and lag >= 0, got {self.tokens}, {self.pool} and {self.lag}"
            )

    def may_start(self, running: int, waiting: int, step: int, groups_per_step: int) -> bool:
        return running < self.pool

    def draws(self, standing: Standing) -> int:
        is_young = all(standing.step + 1 - version <= self.lag for version in standing.running)
        return len(standing.waiting) if is_young and standing.tokens >= self.tokens else 0
