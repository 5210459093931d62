"""AAPO's attempts (2505.14264): for each of the policy's one by the model it began as, at the same task.

Papers: aapo
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
class BesideReference(Strategy):
    """The first half of the starts is the policy's, the second the reference's; needs the engine `WithReference`."""

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        half = len(starts) // 2
        if len(starts) != 2 * half or not half:
            raise ConfigurationError(
                f"BesideReference pairs attempts: need an even number per group, got {len(starts)}"
            )
        theirs = [replace(each, voice=REFERENCE, origin=Origin.TEACHER) for each in starts[half:]]
        return await together(play(start) for start in (*starts[:half], *theirs))
