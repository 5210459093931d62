"""RAGEN's filter (2504.20073): of a draw only the groups whose attempts ended most unevenly are learned from.

Papers: ragen
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.control.seeded_choice import highest
from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.types import Group, Metrics


@dataclass(frozen=True)
class WidestSpread(Advantage):
    """What `inner` gives to the `share` of groups with the largest spread of rewards, at least one; others get 0.

    The spread is the sample std of the attempts that count, 0 where there is one; chance decides between equals, so
    that their order in a draw does not. What is left out teaches a critic nothing either: its return is what was
    expected.
    """

    inner: Advantage
    share: float = 0.25  # of the groups of a draw
    by_chance: bool = False  # any groups, for a control

    min_group: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ConfigurationError(f"WidestSpread needs a share above 0 and up to 1, got {self.share}")

    def __call__(self, groups: Sequence[Group]) -> None:
        chosen = self._chosen(groups)
        self.inner([groups[place] for place in chosen])
        for attempt in (a for place, group in enumerate(groups) if place not in chosen for a in group.scored):
            attempt.credit(0.0)
            attempt.returns = attempt.values

    def _chosen(self, groups: Sequence[Group]) -> list[int]:
        """Places in the draw, in its order."""
        scores = [0.0 if self.by_chance else spread(group) for group in groups]
        count = max(int(self.share * len(groups) + 1e-9), 1)
        return sorted(highest(scores, count, [group.number for group in groups]))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; where the spread falls and rewards do not rise, a policy repeats itself."""
        spreads = np.array([spread(group) for group in groups])
        gained = spreads[self._chosen(groups)].mean() - spreads.mean()
        return {"spread": float(spreads.mean()), "spread_gained": float(gained)}


def spread(group: Group) -> float:
    """Of what its attempts were paid, before anything is taken off."""
    return float(group.rewards.std(ddof=1)) if len(group.scored) > 1 else 0.0
