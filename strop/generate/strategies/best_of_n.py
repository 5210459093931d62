"""Best-of-n sampling: the highest-reward rollout of n; with `Evaluation.strategy` it measures pass@n."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strop.concurrency import together
from strop.errors import ConfigurationError
from strop.roles import Player, Strategy
from strop.types import Group, Rollout, Start


@dataclass(frozen=True)
class BestOf(Strategy):
    """Strategy that samples `count` independent rollouts per start and returns the one of highest reward.

    Ties go to the first; a failed one is returned only if all failed.
    """

    count: int = 8  # rollouts, of which one is returned

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ConfigurationError(f"BestOf needs count >= 1, got {self.count}")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        return await together(self._best(start, play) for start in starts)

    async def _best(self, start: Start, play: Player) -> Rollout:
        tried = [start, *(play.another() for _ in range(self.count - 1))]
        made = await together(play(each) for each in tried)
        scores = [float("-inf") if scored is None else scored.reward for scored in await play.score(made)]
        return made[scores.index(max(scores))]
