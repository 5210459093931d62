"""Reverse curriculum (R3, 2402.05808): rollouts start from prefixes of a demonstration, long ones first.

Readings: cuts are evenly spaced over the demonstration's tokens, which needs no line breaks. The prefix is not trained
on. Mixed, as in the paper's final form, all cuts and the bare prompt alternate over the rollouts of a run; staged, the
weight version decides: the last cut first, the prompt from version `places * every` on.
Papers: r3
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strop.concurrency import together
from strop.errors import ConfigurationError
from strop.generate.tree_search.branch import branch_of, branched
from strop.roles import Agent, Player, Strategy
from strop.types import Group, Rollout, Start


@dataclass(frozen=True)
class ReverseCurriculum(Strategy):
    """Strategy in which each start continues from one of `places` cuts of a demonstration, or from the prompt.

    The demonstration itself is not returned; fact `shared` is the prefix length. If the environment fails the
    demonstration, all rollouts start at the prompt.
    """

    expert: Agent
    places: int = 5  # cuts of a demonstration, besides the prompt
    every: int = 0  # versions for which each cut is the only start, the last one first; 0: all alternate

    def __post_init__(self) -> None:
        if self.places < 1 or self.every < 0:
            raise ConfigurationError(
                f"ReverseCurriculum needs places >= 1 and every >= 0, got {self.places} and {self.every}"
            )

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        before = len(group.rollouts)
        places = [self._place(group, before + index, len(starts)) for index in range(len(starts))]
        if not any(places):
            return await together(play(start) for start in starts)
        shown = await play(play.another(), self.expert)
        size = shown.num_tokens if shown.is_scored else 0
        cuts = [place * size // (self.places + 1) for place in places]
        chosen = [branch_of(shown, at, start) if at else start for at, start in zip(cuts, starts, strict=True)]
        return await together(branched(start, play) for start in chosen)

    def _place(self, group: Group, index: int, size: int) -> int:
        """0 is the prompt, `places` the cut nearest to the end."""
        if self.every:
            return max(self.places - group.version // self.every, 0)
        return (group.number * size + index) % (self.places + 1)
