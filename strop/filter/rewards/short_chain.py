"""Hawkeye's price of a long chain of thought (2504.00424): the square of what exceeds a share of the plain one.

Reading: lengths are shares of the plain chain's, with a price of 1; the paper's square of raw tokens would explode.
Where the plain attempt has no token, because its world failed before it began, nothing is compared and nothing costs.
Papers: hawkeye
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.roles import Reward
from strop.success import PLAIN
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class ShortChain(Reward):
    """-max(0, tokens / plain tokens - free)^2."""

    free: float = 0.3  # share of the plain chain that costs nothing
    weight: float = 1.0  # of this reward beside others

    is_inline: ClassVar[bool] = True
    name: ClassVar[str] = "short_chain"

    def __post_init__(self) -> None:
        if self.free < 0:
            raise ConfigurationError(f"ShortChain needs free >= 0, got {self.free}")

    def __call__(self, group: Group) -> list[float]:
        return [-(max(0.0, self._length(attempt) - self.free) ** 2) for attempt in group.trajectories]

    def _length(self, attempt: Trajectory) -> float:
        if PLAIN not in attempt.facts:
            raise ConfigurationError(f"attempt {attempt.id} has no {PLAIN}: use the strategy MeasuredByPlain")
        plain = attempt.facts[PLAIN]
        return attempt.num_tokens / plain if plain else 0.0
