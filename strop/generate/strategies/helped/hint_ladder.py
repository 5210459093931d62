"""GHPO's hints (2507.10628): where a whole wave failed, the next one reads more of the solution, and trains with it.

Reading: shares are of the characters of the world's own working, cut wherever that is. Hinted attempts keep the prompt
that they read; each wave is a family of its own.
Papers: ghpo
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from strop.concurrency import together
from strop.environments.format.hints import with_hint, without_hints, working
from strop.errors import ConfigurationError
from strop.generate.interfaces import Player
from strop.roles import Strategy, World
from strop.types import Group, Message, Metrics, Origin, Start, Trajectory

if TYPE_CHECKING:
    from strop.run import Run

HINT = "hint"  # the fact of what share of the working an attempt was shown


@dataclass(frozen=True)
class HintLadder(Strategy):
    """The first wave is plain; the next ones read the first 25, 50 and 75 % of the working."""

    worlds: tuple[World, ...]
    shares: tuple[float, ...] = (0.25, 0.5, 0.75)  # of the working, one rung after the other

    def __post_init__(self) -> None:
        if not self.shares or list(self.shares) != sorted(self.shares) or not 0 < self.shares[0] <= self.shares[-1] < 1:
            raise ConfigurationError(f"HintLadder needs rising shares between 0 and 1, got {self.shares}")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        if not group.trajectories:
            return await together(play(start) for start in starts)
        rung = len({attempt.family for attempt in group.trajectories}) - 1
        share = self.shares[min(rung, len(self.shares) - 1)]
        told = working(self.worlds, group.task)
        messages = with_hint(group.task, told[: round(share * len(told))])
        return await together(_guided(start, messages, share, play) for start in starts)

    def problems(self, run: Run) -> list[str]:
        return without_hints(self.worlds)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """What share of the working the trained attempts were shown, on average; plain ones none."""
        shown = [attempt.facts.get(HINT, 0.0) for group in groups for attempt in group.scored]
        return {"hint_share": sum(shown) / max(len(shown), 1)}


async def _guided(start: Start, messages: tuple[Message, ...], share: float, play: Player) -> Trajectory:
    attempt = await play(replace(start, messages=messages, origin=Origin.GUIDED, family=f"hint {share:g}"))
    return replace(attempt, facts=attempt.facts | {HINT: share})
