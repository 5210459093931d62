"""Token budget per step (C3PO++ of Ring-1T, 2510.18855): a step starts once finished groups hold enough tokens.

Unfinished rollouts survive the update and continue under the new weights. The paper purges what survived too many
rounds, with a limit it does not give; here a step waits for such groups instead, so that nothing is discarded. Reading:
the tokens of a group count when it is finished, not while it is sampled.

Papers: ring-1t
"""

from __future__ import annotations

from dataclasses import dataclass, field

from strop.control.admission.support.admission_state import Standing
from strop.errors import ConfigurationError
from strop.roles import Admission


@dataclass
class TokenBudget(Admission):
    """`pool` groups are in flight until finished ones hold `tokens` new tokens; the step trains on all finished ones.

    From then until the new version is published nothing starts, so that a step trains on no more than what was finished
    or in flight when the budget was reached. If gates dropped all of it, more is started. At lag 0 a step waits for all
    groups in flight, and groups start together, a pool at a time: the batch does not depend on timing.
    """

    tokens: int  # of finished groups that make a step
    pool: int = 16  # groups in flight
    lag: int = 5  # versions
    _is_filling: bool = field(default=False, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.tokens < 1 or self.pool < 1 or self.lag < 0:
            raise ConfigurationError(
                f"TokenBudget needs tokens >= 1, pool >= 1 and lag >= 0, got {self.tokens}, {self.pool} and {self.lag}"
            )

    def may_start(self, running: int, waiting: int, step: int, groups_per_step: int, tokens: int = 0) -> bool:
        has_room = running < self.pool and (tokens < self.tokens or waiting == 0)
        if not has_room:
            self._is_filling = False
        elif running == 0:
            self._is_filling = True
        return has_room and (self._is_filling or self.lag > 0)

    def batch_size(self, standing: Standing) -> int:
        is_young = all(standing.step + 1 - version <= self.lag for version in standing.running)
        return len(standing.waiting) if is_young and standing.tokens >= self.tokens else 0
