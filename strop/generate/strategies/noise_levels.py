"""NoisyGRPO's group (2510.21122): one attempt per level of noise, the first from the clean prompt.

Papers: noisygrpo
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strop.concurrency import together
from strop.generate.interfaces import Player
from strop.generate.policy_names import NOISE
from strop.roles import Strategy
from strop.types import Group, Start, Trajectory


@dataclass(frozen=True)
class NoiseLevels(Strategy):
    """Attempt i is made at level i modulo their number, and has it as its fact `noise`; needs the engine `Noisy`."""

    levels: tuple[float, ...] = (0.0, 0.3, 0.6, 0.9)  # of noise, one attempt each in turn

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        async def played(index: int, start: Start) -> Trajectory:
            way = index % len(self.levels)
            attempt = await play(replace(start, voice=f"{NOISE}{way}"))
            return replace(attempt, facts=attempt.facts | {"noise": self.levels[way]})

        return await together(played(index, start) for index, start in enumerate(starts))
