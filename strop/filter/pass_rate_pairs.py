"""AceCoder's pairs (2502.01718): a program that passes many tests against one that passes clearly fewer, but some.

Reading: pairs are taken in the order of the winners' pass rates, then of the losers', equal ones in the order of the
attempts.
Papers: acecoder
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strop.errors import ConfigurationError

_ROUNDING = 1e-9  # 1 - 0.6 is a little less than 0.4


@dataclass(frozen=True)
class PassRatePairs:
    """The better passes at least `least` of the tests and `gap` more than the other, which passes some.

    A loser that passes nothing crashes, as a rule, and teaches nothing. Equal programs count once.
    """

    least: float = 0.8  # share of tests that a winner passes
    gap: float = 0.4  # by which it passes more than the loser
    most: int = 3  # pairs of one task

    def __post_init__(self) -> None:
        if not (0 < self.gap <= self.least <= 1 and self.most >= 1):
            raise ConfigurationError(
                f"pairs need 0 < gap <= least <= 1 and most >= 1, got {self.gap:g}, {self.least:g} and {self.most}"
            )

    def __call__(self, programs: Sequence[str], rates: Sequence[float]) -> list[tuple[int, int]]:
        """Places of winner and loser of each pair."""
        once = [place for place, text in enumerate(programs) if text not in programs[:place]]
        ranked = sorted(once, key=lambda place: -rates[place])
        found = [
            (winner, loser)
            for above, winner in enumerate(ranked)
            for loser in ranked[above + 1 :]
            if self.is_pair(rates[winner], rates[loser])
        ]
        return found[: self.most]

    def is_pair(self, better: float, worse: float) -> bool:
        is_clear = better - worse >= self.gap - _ROUNDING
        return better >= self.least - _ROUNDING and is_clear and worse > 0
