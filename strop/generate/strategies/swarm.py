"""SAPO's exchange (2509.08721): what the policy tried is shared as text, and what others tried is said in its place.

Foreign text is tokenized here, with an end behind each reply, and judged by this node's own worlds; it was sampled by
nobody here (version -1), so it counts neither as tokens generated nor in any pass rate (GUIDED). Trained with a loss
without ratio it is the policy gradient as if it were on-policy, which is biased, and meant so.
Papers: sapo
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from strop.concurrency import together
from strop.control.sharing import FOREIGN, SharedGroup, publish, read
from strop.generate.interfaces import Player
from strop.generate.reciting import Reciting
from strop.roles import Strategy
from strop.types import Group, Metrics, Start, Trajectory


@dataclass(frozen=True)
class Swarm(Strategy):
    """Own tasks are tried, and shared where a `node` name is given; foreign ones are recited, as many as wanted."""

    folder: str  # where nodes share
    node: str = ""  # this node's name there; empty: it shares nothing

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        if not group.task.id.startswith(FOREIGN):
            return await together(play(start) for start in starts)
        shared = read(Path(self.folder), group.task.id.removeprefix(FOREIGN))
        said = shared.replies[: len(starts)] if shared is not None else ()
        pairs = zip(starts, said, strict=False)
        return await together(play(start, Reciting(replies)) for start, replies in pairs)

    def observe(self, group: Group) -> None:
        if not self.node or group.task.id.startswith(FOREIGN) or not group.own:
            return
        replies = tuple(tuple(turn.message.content for turn in attempt.turns) for attempt in group.own)
        publish(Path(self.folder), self.node, group.number, SharedGroup(group.task, replies))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says which share of the draw others made, and how many groups of it others may have."""
        foreign = sum(group.task.id.startswith(FOREIGN) for group in groups)
        shared = (len(groups) - foreign) * bool(self.node)
        return {"foreign_share": foreign / max(len(groups), 1), "shared_groups": float(shared)}
