"""Guide's attempts (2506.13923): where a whole wave failed, the next one reads a hint, and is trained without it.

Reading: the paper's hints are a larger model's, from a known solution; here they are the first steps of the world's own
working. Hinted attempts are compared among themselves: they are a family of their own.
Papers: guide
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from strop.concurrency import together
from strop.environments.format.hints import hinted, without_hints
from strop.generate.interfaces import Player
from strop.roles import Strategy, World
from strop.types import Group, Message, Origin, Start, Trajectory

if TYPE_CHECKING:
    from strop.run import Run

FAMILY = "hinted"


@dataclass(frozen=True)
class HintedWhenLost(Strategy):
    """The first wave is plain; every later one is sampled with a hint and told as if there had been none."""

    worlds: tuple[World, ...]
    steps: int = 1  # of the working that a hint shows

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        if not group.trajectories:
            return await together(play(start) for start in starts)
        messages = hinted(self.worlds, group.task, self.steps)
        return await together(_retold(start, messages, play) for start in starts)

    def problems(self, run: Run) -> list[str]:
        return without_hints(self.worlds)


async def _retold(start: Start, messages: tuple[Message, ...], play: Player) -> Trajectory:
    attempt = await play(replace(start, messages=messages, origin=Origin.GUIDED, family=FAMILY))
    return play.retold(attempt, attempt.task.messages) if attempt.turns else attempt
