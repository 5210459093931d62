"""Optima's second selection (2410.08115): of what a draw holds, only the best share is imitated.

Papers: optima
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.types import Group


@dataclass(frozen=True)
class TopShare(Advantage):
    """Credit 1 for the `share` of the draw's attempts with the largest rewards, at least for one, and 0 for the others.

    Earlier ones go first among equals.
    """

    share: float = 0.7  # of the attempts of a draw

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ConfigurationError(f"TopShare needs a share above 0 and up to 1, got {self.share}")

    def __call__(self, groups: Sequence[Group]) -> None:
        attempts = [attempt for group in groups for attempt in group.scored]
        ranked = sorted(attempts, key=lambda attempt: -attempt.reward)
        count = max(int(self.share * len(attempts) + 1e-9), 1)
        for place, attempt in enumerate(ranked):
            attempt.credit(float(place < count))
