"""Some attempts by the model that training began with, at the same task, for rewards that compare with it.

Papers: par
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strop.concurrency import together
from strop.errors import ConfigurationError
from strop.generate.interfaces import Player
from strop.generate.policy_names import REFERENCE
from strop.roles import Strategy
from strop.types import Group, Origin, Start, Trajectory


@dataclass(frozen=True)
class FewReferences(Strategy):
    """The last `count` attempts of a group are the reference's, TEACHER; needs the engine `WithReference`."""

    count: int = 1

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        own = len(starts) - self.count
        if own < 1 or self.count < 1:
            raise ConfigurationError(f"{self.count} of {len(starts)} attempts are the reference's, need 1 of each")
        theirs = [replace(each, voice=REFERENCE, origin=Origin.TEACHER) for each in starts[own:]]
        return await together(play(start) for start in (*starts[:own], *theirs))
