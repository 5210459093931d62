"""Random pruning: negative control of strategies that prune rollouts midway; the same number is dropped at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from strop.concurrency import together
from strop.errors import ConfigurationError
from strop.roles import Player, Strategy
from strop.success import SURVIVAL
from strop.types import Group, Outcome, Rollout, Start


@dataclass(frozen=True)
class PrunedAtRandom(Strategy):
    """Strategy in which a random share of rollouts unfinished after `at` tokens continues; the others are pruned."""

    at: int = 16  # written tokens after which all pause
    keep: float = 0.5  # share of the paused ones that continues

    def __post_init__(self) -> None:
        if self.at < 1 or not 0 < self.keep <= 1:
            raise ConfigurationError(f"PrunedAtRandom needs at >= 1 and 0 < keep <= 1, got {self}")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        rollouts = await together(play(replace(start, pause=self.at)) for start in starts)
        paused = [place for place, rollout in enumerate(rollouts) if rollout.outcome is Outcome.PRUNED]
        goes_on = survivors(len(paused), self.keep, starts[0].key) if paused else []

        async def ended(place: int) -> Rollout:
            if place not in kept:
                return rollouts[place]
            return await play(replace(starts[place], turns=rollouts[place].turns))

        kept = {paused[index] for index in goes_on}
        for place, rollout in zip(paused, await together(map(ended, paused)), strict=True):
            rollouts[place] = replace(rollout, facts=rollout.facts | {SURVIVAL: self.keep})
        return rollouts


def survivors(count: int, keep: float, key: int) -> list[int]:
    """Random choice: each of `count` with probability `keep`, always keep * count of them up to the fraction."""
    random = np.random.default_rng(key)
    number = int(keep * count + random.random())
    return sorted(random.permutation(count)[:number].tolist())
