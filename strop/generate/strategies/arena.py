"""Arena Learning's fights (2407.10627): for each of the policy's attempts one by a stronger model at the same task.

Its rating against all rivals is by Bradley-Terry, the first rival standing at 1000.
Papers: arena-learning
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from strop.concurrency import together
from strop.errors import AdviserError, ConfigurationError
from strop.filter.ratings import ratings
from strop.generate.interfaces import Player
from strop.roles import Agent, Strategy
from strop.types import Group, Metrics, Origin, Start, Trajectory

FIGHT = "fight-"  # before a fight's number: the family of both who fight
_RIVAL = "rival"  # the fact of who the other one was


@dataclass
class Arena(Strategy):
    """The first half of the starts is the policy's, the second the rivals' in turn; each pair is a family."""

    rivals: tuple[Agent, ...]

    # by rival: fights that the policy won and lost, a tie one half each
    _won: list[float] = field(default_factory=list, init=False, repr=False, compare=False)
    _lost: list[float] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.rivals:
            raise ConfigurationError("Arena needs at least 1 rival, got 0")
        self._won, self._lost = [0.0] * len(self.rivals), [0.0] * len(self.rivals)

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        half = len(starts) // 2
        if len(starts) != 2 * half or not half:
            raise ConfigurationError(f"Arena pairs attempts: need an even number per group, got {len(starts)}")
        named = [replace(each, family=f"{FIGHT}{number % half}") for number, each in enumerate(starts)]
        made = await together(
            [*(play(start) for start in named[:half]), *(self._rival(n, s, play) for n, s in enumerate(named[half:]))]
        )
        return [attempt for attempt in made if attempt is not None]

    async def _rival(self, number: int, start: Start, play: Player) -> Trajectory | None:
        """One who does not answer does not fight."""
        who = number % len(self.rivals)
        try:
            attempt = await play(replace(start, origin=Origin.TEACHER), self.rivals[who])
        except AdviserError:
            return None
        attempt.facts[_RIVAL] = float(who)
        return attempt

    def observe(self, group: Group) -> None:
        for attempt in group.scored:
            if attempt.origin is Origin.TEACHER and _RIVAL in attempt.facts:
                who = int(attempt.facts[_RIVAL])
                self._lost[who] += attempt.reward
                self._won[who] += 1 - attempt.reward

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Over all fights so far."""
        wins = np.zeros((len(self.rivals) + 1,) * 2)
        wins[-1, :-1], wins[:-1, -1] = self._won, self._lost
        total = sum(self._won) + sum(self._lost)
        return {"rating": ratings(wins)[-1], "fights_lost": sum(self._lost) / total} if total else {}

    def state(self) -> dict[str, Any]:
        return {"won": self._won, "lost": self._lost}

    def restore(self, state: dict[str, Any]) -> None:
        self._won, self._lost = list(state["won"]), list(state["lost"])
