"""Credit of one family of siblings times a factor, after it was compared: roles of one policy that weigh differently.

Papers: evolving-rl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.roles import Advantage
from strop.types import Group, Metrics


@dataclass(frozen=True)
class FamilyWeighted(Advantage):
    """What `inner` gives, times `factor` for attempts of this family."""

    inner: Advantage
    family: str = "extractor"  # whose credit is weighed
    factor: float = 0.2  # of that family's credit

    is_local: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        for attempt in (attempt for group in groups for attempt in group.scored):
            if attempt.family == self.family and attempt.advantages is not None:
                attempt.advantages = attempt.advantages * np.float32(self.factor)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how much credit the family has, of a token."""
        own = [attempt for group in groups for attempt in group.scored if attempt.family == self.family]
        given = [np.abs(attempt.advantages) for attempt in own if attempt.advantages is not None]
        tokens = np.concatenate([np.zeros(0, np.float32), *given])
        return {f"credit_of/{self.family}": float(tokens.mean()) if len(tokens) else 0.0}
