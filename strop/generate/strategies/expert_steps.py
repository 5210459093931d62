"""StepAgent's inspection (2411.03817): behind each step of an expert the policy says what it would do there itself.

The history is the expert's, so mistakes that add up are never seen, as in the paper. Reading: which steps are compared
is left to chance, as many as there are starts; steps that say the same are a pair too, of which nobody can be told.
Papers: stepagent
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from strop.concurrency import together
from strop.generate.interfaces import Player
from strop.generate.one_step import OneStep
from strop.generate.turn_ops import given
from strop.roles import Agent, Strategy
from strop.types import Group, Origin, Start, Trajectory

WORTH = "noted"  # the fact of whose step it is: 1 the expert's, 0 the policy's


@dataclass(frozen=True)
class ExpertSteps(Strategy):
    """Pairs of the expert's step and the policy's, each a family, behind the steps before it, which are given."""

    expert: Agent

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        shown = await play(play.another(), self.expert)
        if not shown.is_scored or not shown.turns:
            return [shown]
        count = min(len(starts), len(shown.turns))
        chance = np.random.default_rng(starts[0].key)
        steps = sorted(chance.choice(len(shown.turns), count, replace=False).tolist())
        pairs = await together(self._pair(shown, at, start, play) for at, start in zip(steps, starts, strict=False))
        return [attempt for pair in pairs for attempt in pair]

    async def _pair(self, shown: Trajectory, at: int, start: Start, play: Player) -> tuple[Trajectory, Trajectory]:
        told = replace(start, turns=given(shown.turns[:at]), parent=shown.id, family=f"{shown.id}@{at}")
        another = play.another()
        taught = replace(told, id=another.id, key=another.key, origin=Origin.TEACHER)
        expert = await play(taught, OneStep(shown.turns[at].message.content))
        own = await play(replace(told, origin=Origin.BRANCHED), OneStep())
        return _noted(expert, 1.0), _noted(own, 0.0)


def _noted(attempt: Trajectory, worth: float) -> Trajectory:
    return replace(attempt, facts=attempt.facts | {WORTH: worth})
