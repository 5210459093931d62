"""Preference pairs from a dataset: recorded chosen and rejected completions; nothing is sampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.concurrency import together
from strop.environments.data.rows import CHOSEN, REJECTED, columns_of
from strop.environments.needs import PREFERENCES, EnvNeed
from strop.generate.strategies.support.forced_completion import ForcedCompletion
from strop.roles import Player, Strategy
from strop.types import Group, Outcome, Rollout, Start


@dataclass(frozen=True)
class RecitedPair(Strategy):
    """Chosen completion with reward 1 and rejected one with reward 0; a pair that exceeds the context is dropped."""

    env_needs: ClassVar[tuple[EnvNeed, ...]] = (PREFERENCES,)

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        columns = columns_of(group.task)
        agents = [ForcedCompletion(columns[CHOSEN], 1.0), ForcedCompletion(columns[REJECTED], 0.0)]
        said = await together(play(start, agent) for start, agent in zip(starts, agents, strict=True))
        return [] if any(rollout.outcome is Outcome.TRUNCATED for rollout in said) else said
