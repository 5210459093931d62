"""GVL's progress (2411.04549): an adviser sees an attempt's steps out of order and says how far along each one is.

Put back in order, the numbers should rise: their rank correlation with time says how much of an attempt was progress.
Readings: steps of a dialogue stand for frames of a video. An answer that leaves a step out, or calls all of them
equally far, is no mark; one step alone has nothing to order, which is a mark of 0.
Papers: gvl
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.filter.judges.batch_ask import verdict
from strop.filter.judges.progress_frames import (
    ORDER,
    PERCENTAGES,
    PROGRESS,
    frames,
    order_correlation,
    percentages,
    question,
)
from strop.roles import Adviser, Reward
from strop.types import Group, Sampling, Trajectory


@dataclass(frozen=True)
class InContextProgress(Reward):
    """The value-order correlation of each attempt, from -1 to 1; 0 for one step alone."""

    adviser: Adviser
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # it waits, and its adviser does the work

    async def __call__(self, group: Group) -> list[float]:
        return list(await asyncio.gather(*(self._mark(attempt) for attempt in group.trajectories)))

    async def _mark(self, attempt: Trajectory) -> float:
        first, *others = frames(attempt) or [""]
        if not others:
            return 0.0
        key = int.from_bytes(hashlib.sha256(f"{attempt.id} {others}".encode()).digest()[:8], "big") >> 1
        order = np.random.default_rng(key).permutation(len(others))
        asked = question(attempt.task.messages[-1].content, first, [others[place] for place in order])
        own = await verdict(self.adviser, asked, PERCENTAGES, Sampling(temperature=0.0), key)
        said = percentages(own, len(others))
        if said is None:
            return math.nan
        values = [0.0] * (len(others) + 1)
        for place, value in zip(order.tolist(), said, strict=True):
            values[place + 1] = value
        if (found := order_correlation(values)) is None:
            return math.nan
        attempt.facts |= {f"{PROGRESS}{turn}": value for turn, value in enumerate(values)} | {ORDER: found}
        return found
