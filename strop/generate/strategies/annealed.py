"""EAD's attempts (2510.05251): plain ones whose replies are sampled hot at first and cold at last.

Papers: ead
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from strop.capabilities import inside
from strop.concurrency import together
from strop.generate.engines.wrappers.annealed_temperature import TEMPERATURE, AnnealedTemperature
from strop.generate.interfaces import Player
from strop.generate.policy_names import ANNEALED
from strop.roles import Strategy
from strop.types import Group, Start, Trajectory

if TYPE_CHECKING:
    from strop.run import Run


@dataclass(frozen=True)
class Annealed(Strategy):
    """Each attempt is made in the annealed voice of its group's version; needs the engine `AnnealedTemperature`.

    Facts: `heat`, the mean temperature of its first reply's tokens, and `cooling`, by how much the first half of them
    was hotter than the second.
    """

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        return await together(_played(start, play) for start in starts)

    def problems(self, run: Run) -> list[str]:
        if inside(run.engine, AnnealedTemperature):
            return []
        return ["Annealed asks for replies whose temperature falls, and the engine is no AnnealedTemperature"]


async def _played(start: Start, play: Player) -> Trajectory:
    attempt = await play(replace(start, voice=f"{ANNEALED}{start.version}"))
    if not attempt.turns or len(attempt.turns[0].tokens) < 2:
        return attempt
    first = attempt.turns[0]
    heat = first.aux[TEMPERATURE][len(first.prompt) :]  # [N]
    half = len(heat) // 2
    told = {"heat": float(heat.mean()), "cooling": float(heat[:half].mean() - heat[half:].mean())}
    return replace(attempt, facts=attempt.facts | told)
