"""Playpen's figures (2504.08590): how many games were played to their end, how well, and both in one number.

Papers: playpen
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.environments.data.lookup import world_of
from strop.roles import Reward, World
from strop.types import Group, Metrics

_NAME = "played"


@dataclass(frozen=True)
class Played(Reward):
    """1 for a game in which every reply was a move, 0 for one that was aborted; beside the reward, without weight.

    score = % played * mean quality of the played / 100, quality from 0 to 100: an aborted game counts in the first
    and not in the second.
    """

    worlds: tuple[World, ...]
    weight: float = 0.0

    is_inline: ClassVar[bool] = True
    name: ClassVar[str] = _NAME

    def __call__(self, group: Group) -> list[float]:
        found = []
        for attempt in group.trajectories:
            world = world_of(self.worlds, attempt.task)
            found.append(float(all(world.answer(turn.message.content) for turn in attempt.turns)))
        return found

    def learn(self, groups: Sequence[Group]) -> Metrics:
        attempts = [attempt for group in groups for attempt in group.scored]
        played = [attempt for attempt in attempts if attempt.rewards.get(_NAME)]
        share = len(played) / max(len(attempts), 1)
        quality = float(np.mean([100 * attempt.reward for attempt in played])) if played else 0.0
        return {"games_played": share, "games_quality": quality, "games_score": share * quality}
