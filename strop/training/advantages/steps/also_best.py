"""VSC-RL's second term (2502.07949): the best attempts of a draw are imitated as a whole, beside another credit.

Papers: vsc-rl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.types import Group, Metrics


@dataclass(frozen=True)
class AlsoBest(Advantage):
    """`weight` more for every token of the `share` of the draw's attempts with the largest rewards, at least of one.

    Earlier ones go first among equals.
    """

    inner: Advantage
    share: float = 0.1  # of the attempts of a draw
    weight: float = 1.0  # of imitation beside the inner credit

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ConfigurationError(f"AlsoBest needs a share above 0 and up to 1, got {self.share}")

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        attempts = [attempt for group in groups for attempt in group.scored]
        count = max(int(self.share * len(attempts) + 1e-9), 1)
        for attempt in sorted(attempts, key=lambda attempt: -attempt.reward)[:count]:
            if attempt.advantages is not None:
                attempt.advantages = attempt.advantages + self.weight
                attempt.facts["cloned"] = 1.0

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how many attempts were imitated as a whole, and how many have inner credit somewhere."""
        attempts = [attempt for group in groups for attempt in group.scored if attempt.advantages is not None]
        cloned = [attempt.facts.get("cloned", 0.0) for attempt in attempts]
        inner = [
            bool(np.any(np.asarray(a.advantages) != self.weight * own)) for a, own in zip(attempts, cloned, strict=True)
        ]
        count = max(len(attempts), 1)
        return {"cloned_share": sum(cloned) / count, "stepwise_share": sum(inner) / count}
